import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  encodeNotification,
  encodeOpen,
  encodeUpdates,
  keepalive,
} from '../../../../src/network/bgp/encode.ts';
import { MessageStream } from '../../../../src/network/bgp/decode.ts';
import type { BGPMessage, Open, Prefix } from '../../../../src/network/bgp/message.ts';
import { prefixKey, type BGPRoute } from '../../../../src/network/bgp/route.ts';
import { Session } from '../../../../src/network/bgp/session.ts';
import type { SessionAction, SessionOptions } from '../../../../src/network/bgp/session-io.ts';

const options: SessionOptions = {
  ...{ localAs: 64512, routerId: '192.0.2.1', peerAs: 64513, holdSeconds: 9, families: ['IPv4', 'IPv6'] },
  ...{ restartSeconds: 0, restarting: false, random: () => 0 },
};
const theirOpen: Open = {
  ...{ type: 'open', as: 64513, holdSeconds: 90, routerId: '192.0.2.2' },
  capabilities: {
    families: ['IPv4', 'IPv6'],
    routeRefresh: true,
    fourByteAs: true,
    gracefulRestart: undefined,
  },
};
const refreshIPv4 = Buffer.concat([Buffer.alloc(16, 0xff), Buffer.from('00170500010001', 'hex')]);

/** The peer's end: what it was sent, and what it knows by it. */
class Peer {
  readonly messages: BGPMessage[] = [];
  readonly routes = new Set<string>();
  readonly #stream = new MessageStream();

  /** What the session does to it; its actions. */
  take(actions: readonly SessionAction[]): readonly SessionAction[] {
    this.#stream.fourByteAs = true;
    for (const action of actions) {
      if (action.do !== 'send') continue;
      for (const message of this.#stream.push(action.bytes)) {
        this.messages.push(message);
        if (message.type !== 'update') continue;
        for (const prefix of message.withdrawn) this.routes.delete(prefixKey(prefix));
        for (const prefix of message.announced) this.routes.add(prefixKey(prefix));
      }
    }
    return actions;
  }

  /** What the session does to it, and then all that waited for the socket. */
  takeAll(session: Session, actions: readonly SessionAction[], now: number): void {
    for (let next = actions; next.length > 0; next = session.drained(now)) this.take(next);
  }

  /** The messages since the last look. */
  seen(): BGPMessage[] {
    return this.messages.splice(0);
  }
}

function route(prefix: Prefix, communities: readonly number[] = []): BGPRoute {
  const nextHop = prefix.family === 'IPv4' ? '192.0.2.1' : '2001:db8::1';
  return { prefix, nextHop, communities, largeCommunities: [] };
}

function table(...routes: BGPRoute[]): ReadonlyMap<string, BGPRoute> {
  return new Map(routes.map((each) => [prefixKey(each.prefix), each]));
}

const v4 = (n: number): Prefix => ({ family: 'IPv4', network: 0xcb00_7100n + BigInt(n), length: 32 });
const v6 = (n: number): Prefix => ({
  family: 'IPv6',
  network: (0x2001_0db8n << 96n) + BigInt(n),
  length: 128,
});

/** A session that is established at 0 ms. */
function established(changed: Partial<SessionOptions> = {}, open: Partial<Open> = {}) {
  const session = new Session({ ...options, ...changed });
  const peer = new Peer();
  session.start(0);
  peer.take(session.connected(0));
  peer.take(session.received(encodeOpen({ ...theirOpen, ...open }), 0));
  peer.take(session.received(keepalive, 0));
  session.drained(0);
  return { session, peer };
}

test('a session opens, sends its routes, and then the end of each family', () => {
  const session = new Session(options);
  const peer = new Peer();
  session.announce(table(route(v4(1)), route(v6(1))), 0);
  expect(session.start(0)).toEqual([{ do: 'connect' }]);
  peer.take(session.connected(5));
  expect(peer.seen()).toMatchObject([{ type: 'open', as: 64512, holdSeconds: 9, routerId: '192.0.2.1' }]);
  peer.take(session.received(encodeOpen(theirOpen), 6));
  expect(peer.seen()).toEqual([{ type: 'keepalive' }]);
  expect(session.state).toBe('openConfirm');
  peer.take(session.received(keepalive, 7));
  expect(session.state).toBe('established');
  const updates = peer.seen();
  expect(updates).toHaveLength(4);
  expect(updates.slice(2)).toMatchObject([{ endOfRib: 'IPv4' }, { endOfRib: 'IPv6' }]);
  expect([...peer.routes].sort()).toEqual([prefixKey(v4(1)), prefixKey(v6(1))].sort());
  expect(session.advertised).toBe(2);
});

test('what a peer knows is what is announced, of the families that it takes', () => {
  const prefix = fc.oneof(fc.nat({ max: 9 }).map(v4), fc.nat({ max: 9 }).map(v6));
  const routes = fc.array(fc.tuple(prefix, fc.array(fc.nat({ max: 3 }), { maxLength: 1 })), {
    maxLength: 12,
  });
  fc.assert(
    fc.property(
      fc.array(routes, { maxLength: 6 }),
      fc.constantFrom<Open['capabilities']['families']>(undefined, ['IPv4'], ['IPv6'], ['IPv4', 'IPv6']),
      (history, families) => {
        const { session, peer } = established({}, { capabilities: { ...theirOpen.capabilities, families } });
        for (const entries of history) {
          const wanted = table(...entries.map(([to, communities]) => route(to, communities)));
          peer.takeAll(session, session.announce(wanted, 1), 1);
          const taken = [...wanted.values()].filter((each) =>
            (families ?? ['IPv4']).includes(each.prefix.family),
          );
          expect([...peer.routes].sort()).toEqual(taken.map((each) => prefixKey(each.prefix)).sort());
          peer.seen();
          // The same again is nothing to say.
          expect(session.announce(new Map(wanted), 2)).toEqual([]);
        }
      },
    ),
  );
});

test('a route whose attributes change is announced again, without a withdrawal', () => {
  const { session, peer } = established();
  peer.takeAll(session, session.announce(table(route(v4(1)), route(v4(2))), 1), 1);
  peer.seen();
  peer.take(session.announce(table(route(v4(1), [7]), route(v4(2))), 2));
  expect(peer.seen()).toMatchObject([
    { withdrawn: [], announced: [v4(1)], attributes: { communities: [7] } },
  ]);
});

test('a peer that asks for a refresh gets the routes of that family again', () => {
  const { session, peer } = established();
  peer.takeAll(session, session.announce(table(route(v4(1)), route(v6(1))), 1), 1);
  peer.seen();
  peer.take(session.received(refreshIPv4, 2));
  expect(peer.seen()).toMatchObject([{ announced: [v4(1)] }]);
});

test('while bytes wait to be sent, changes and refreshes wait too, and are sent once', () => {
  const { session, peer } = established();
  peer.take(session.announce(table(route(v4(1))), 1));
  peer.seen();
  for (let n = 2; n < 100; n++) {
    expect(session.announce(table(route(v4(1)), route(v4(n))), n)).toEqual([]);
    expect(session.received(refreshIPv4, n)).toEqual([]);
  }
  peer.takeAll(session, session.drained(100), 100);
  expect(peer.seen()).toMatchObject([{ announced: [v4(1)] }, { announced: [v4(99)] }]);
});

test('routes of the peer are counted, and those that are ours too', () => {
  const { session, peer } = established();
  peer.takeAll(session, session.announce(table(route(v4(1)), route(v4(2))), 1), 1);
  const dialect = { localAs: 64513, isInternal: false, fourByteAs: true };
  const announced = [v4(1), v4(8), v4(9)].map((prefix) => ({ ...route(prefix), nextHop: '192.0.2.2' }));
  for (const bytes of encodeUpdates({ withdrawn: [], announced }, dialect)) session.received(bytes, 2);
  expect([session.routesReceived, session.ownRoutesReceived, session.advertised]).toEqual([3, 1, 2]);
  session.disconnected('ConnectionClosed', 'closed', 3);
  expect([session.routesReceived, session.ownRoutesReceived]).toEqual([0, 0]);
});

describe('the hold time', () => {
  test.each([
    [9, 90, 9],
    [90, 30, 30],
  ])('is the smaller one: %d and %d', (ours, theirs, agreed) => {
    const { session, peer } = established({ holdSeconds: ours }, { holdSeconds: theirs });
    peer.seen();
    // Keepalives every third of it, as long as the peer is heard.
    for (let n = 1; n <= 6; n++) {
      const at = (n * agreed * 1000) / 3;
      expect(session.deadline).toBe(at);
      peer.take(session.tick(at));
      session.drained(0);
      if (n < 6) session.received(keepalive, at);
    }
    expect(peer.seen().map(({ type }) => type)).toEqual(Array.from({ length: 6 }, () => 'keepalive'));
    const last = ((5 * agreed) / 3 + agreed) * 1000;
    for (let at = session.deadline; at < last; at = session.deadline) {
      peer.take(session.tick(at));
      session.drained(0);
    }
    peer.seen();
    peer.take(session.tick(last));
    expect(peer.seen()).toMatchObject([{ type: 'notification', code: 4, subcode: 0 }]);
    expect(session.state).toBe('idle');
  });

  test('of 0 s means no keepalives and no end', () => {
    const { session } = established({}, { holdSeconds: 0 });
    expect(session.deadline).toBe(Number.POSITIVE_INFINITY);
  });

  test('is four minutes until the peer has sent its OPEN', () => {
    const session = new Session(options);
    const peer = new Peer();
    session.start(0);
    peer.take(session.connected(0));
    session.drained(0);
    expect(session.deadline).toBe(240_000);
    peer.seen();
    peer.take(session.tick(240_000));
    expect(peer.seen()).toMatchObject([{ type: 'notification', code: 4 }]);
  });

  test('ends a session whose peer takes nothing for twice as long, though it sends', () => {
    const { session } = established();
    session.announce(table(route(v4(1))), 1000);
    for (let at = 2000; at < 19_000; at += 1000) {
      session.received(keepalive, at);
      session.tick(at);
    }
    expect(session.state).toBe('established');
    expect(session.tick(19_001)).toContainEqual({
      ...{ do: 'report', state: 'idle', reason: 'SendHoldTimerExpired', why: 'the peer does not read' },
    });
  });
});

describe('what a peer says wrongly', () => {
  test.each<[string, Partial<SessionOptions>, Partial<Open>, number]>([
    ['another AS than configured', {}, { as: 64999 }, 2],
    ['our own identifier in our own AS', { localAs: 64513 }, { routerId: '192.0.2.1' }, 3],
    [
      'no family that is announced',
      { families: ['IPv6'] },
      { capabilities: { ...theirOpen.capabilities, families: undefined } },
      7,
    ],
  ])('in its OPEN is refused: %s', (_, changed, open, subcode) => {
    const { session, peer } = established(changed, open);
    expect(peer.seen().at(-1)).toMatchObject({ type: 'notification', code: 2, subcode });
    expect(session.state).toBe('idle');
    expect(session.deadline).toBe(1000);
  });

  test('out of turn is an error of the state machine (RFC 6608)', () => {
    const inState = (messages: readonly Uint8Array[]): BGPMessage | undefined => {
      const session = new Session(options);
      const peer = new Peer();
      session.start(0);
      peer.take(session.connected(0));
      for (const bytes of messages) peer.take(session.received(bytes, 0));
      return peer.seen().at(-1);
    };
    const open = encodeOpen(theirOpen);
    expect(inState([keepalive])).toMatchObject({ code: 5, subcode: 1 });
    expect(inState([open, open])).toMatchObject({ code: 5, subcode: 2 });
    expect(inState([open, keepalive, open])).toMatchObject({ code: 5, subcode: 3 });
  });

  test('as no message ends the session with the NOTIFICATION for it, after what came before it', () => {
    const session = new Session(options);
    const peer = new Peer();
    session.start(0);
    peer.take(session.connected(0));
    peer.take(session.received(encodeOpen(theirOpen), 0));
    peer.seen();
    const actions = peer.take(session.received(Buffer.concat([keepalive, Buffer.alloc(19, 0)]), 2));
    expect(actions.filter((action) => action.do === 'report')).toMatchObject([
      { reason: 'Established' },
      { reason: 'InvalidMessage' },
    ]);
    expect(peer.seen().at(-1)).toMatchObject({ type: 'notification', code: 1, subcode: 1 });
    expect(session.state).toBe('idle');
  });

  test('after its end is not heard', () => {
    const { session } = established();
    session.disconnected('ConnectionClosed', 'closed', 1);
    expect(session.received(keepalive, 2)).toEqual([]);
  });
});

describe('a session that ends', () => {
  test('by a NOTIFICATION reports its words, and sends none back', () => {
    const { session, peer } = established();
    peer.seen();
    const data = Uint8Array.of(4, ...Buffer.from('bye!'));
    const actions = peer.take(session.received(encodeNotification({ code: 6, subcode: 4, data }), 10));
    expect(peer.seen()).toEqual([]);
    expect(actions).toContainEqual(
      expect.objectContaining({ why: 'the peer: Cease: Administrative Reset: bye!' }),
    );
  });

  test('is tried again after 1 s, 2 s, up to 30 s; from the beginning after a minute of success', () => {
    const session = new Session(options);
    const waits: number[] = [];
    let now = 0;
    session.start(now);
    for (let n = 0; n < 7; n++) {
      session.disconnected('ConnectionRefused', 'refused', now);
      waits.push(session.deadline - now);
      now = session.deadline;
      expect(session.tick(now)).toEqual([{ do: 'connect' }]);
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    const open = (): void => {
      session.connected(now);
      session.received(encodeOpen({ ...theirOpen, holdSeconds: 0 }), now);
      session.received(keepalive, now);
    };
    open();
    session.disconnected('ConnectionClosed', 'closed', now + 59_999);
    expect(session.deadline - (now + 59_999)).toBe(30_000);
    now = session.deadline;
    session.tick(now);
    open();
    session.disconnected('ConnectionClosed', 'closed', now + 60_000);
    expect(session.deadline - (now + 60_000)).toBe(1000);
  });

  test('waits for a connection for 5 s at most', () => {
    const session = new Session(options);
    session.start(0);
    expect(session.tick(5000)).toContainEqual({ do: 'close' });
    expect(session.state).toBe('idle');
  });

  test('by our own will says why, and is not tried again', () => {
    const { session, peer } = established();
    peer.seen();
    const actions = peer.take(session.stop('drain of node-1'));
    expect(peer.seen()).toMatchObject([{ code: 6, subcode: 2 }]);
    expect(actions.map((action) => action.do)).toEqual(['send', 'close', 'report']);
    expect(session.deadline).toBe(Number.POSITIVE_INFINITY);
    expect(session.start(100)).toEqual([{ do: 'connect' }]);
  });

  test('knows no more what the peer was sent: it sends all again', () => {
    const { session, peer } = established();
    peer.take(session.announce(table(route(v4(1))), 1));
    session.disconnected('ConnectionClosed', 'closed', 2);
    session.tick(session.deadline);
    const next = new Peer();
    next.take(session.connected(2000));
    next.take(session.received(encodeOpen(theirOpen), 2000));
    next.take(session.received(keepalive, 2000));
    expect([...next.routes]).toEqual([prefixKey(v4(1))]);
  });
});

test('graceful restart is offered with the R bit until a session is established', () => {
  const { session, peer } = established({ restartSeconds: 30, restarting: true });
  const families = [
    { family: 'IPv4', forwarding: true },
    { family: 'IPv6', forwarding: true },
  ];
  expect(peer.seen()[0]).toMatchObject({
    capabilities: { gracefulRestart: { restarting: true, restartSeconds: 30, families } },
  });
  session.disconnected('ConnectionClosed', 'closed', 1);
  session.tick(session.deadline);
  const next = new Peer();
  next.take(session.connected(2000));
  expect(next.seen()).toMatchObject([{ capabilities: { gracefulRestart: { restarting: false } } }]);
});
