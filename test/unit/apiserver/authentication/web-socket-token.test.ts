import { describe, expect, test } from 'vitest';
import { webSocketToken } from '../../../../src/apiserver/authentication/authenticator.ts';

const prefix = 'base64url.bearer.authorization.k8s.io.';

function shown(protocols: string, more: Record<string, string> = {}): ReturnType<typeof webSocketToken> {
  const upgrade = { upgrade: 'WebSocket', connection: 'keep-alive, Upgrade' };
  return webSocketToken({ ...upgrade, 'sec-websocket-protocol': protocols, ...more });
}

describe('the token of a WebSocket', () => {
  test.each([
    [`${prefix}c2VjcmV0, chat`, { token: 'secret', protocols: 'chat' }],
    [`a,${prefix}c2VjcmV0 ,b`, { token: 'secret', protocols: 'a,b' }],
    // what base64url has in other places than base64 ("?>~" and unused bits)
    [`a,${prefix}Pz5-`, { token: '?>~', protocols: 'a' }],
    [`a,${prefix}w7x`, { token: 'ü', protocols: 'a' }],
  ])('is read from %s', (protocols, token) => {
    expect(shown(protocols)).toEqual(token);
  });

  test.each(['', 'chat', `chat, ${prefix}`, 'base64url.bearer.c2VjcmV0'])('is not in "%s"', (protocols) => {
    expect(shown(protocols)).toBe('none');
  });

  test.each([
    ['has no other protocol beside it', `${prefix}c2VjcmV0`],
    ['comes twice', `${prefix}c2VjcmV0, chat, ${prefix}c2VjcmV0`],
    ['is padded', `chat, ${prefix}c2VjcmV0Cg==`],
    ['has letters of base64', `chat, ${prefix}Pz5+`],
    ['is cut', `chat, ${prefix}c2Vjc`],
    ['is no UTF-8', `chat, ${prefix}_w`],
  ])('is refused when it %s', (_why, protocols) => {
    expect(shown(protocols)).toBe('refused');
  });

  test('counts for WebSockets only', () => {
    expect(shown(`chat, ${prefix}c2VjcmV0`, { upgrade: 'SPDY/3.1' })).toBe('none');
    expect(shown(`chat, ${prefix}c2VjcmV0`, { connection: 'close' })).toBe('none');
  });
});
