import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Host, ProgramMissingError } from '../../src/host/host.ts';

/** What every implementation of {@link Host} does. */
export function describeHost(
  name: string,
  open: () => Promise<{ host: Host; close(): Promise<void> }>,
): void {
  describe(`a host: ${name}`, () => {
    let host: Host;
    let close: () => Promise<void>;

    beforeAll(async () => {
      const opened = await open();
      ({ host } = opened);
      close = () => opened.close();
    });
    afterAll(() => close());

    it('runs programs: input, output, exit codes', async () => {
      expect(await host.exec('sh', ['-c', 'cat; echo "$0" >&2; exit 3', 'a b'], { input: 'typed' })).toEqual({
        exitCode: 3,
        stdout: 'typed',
        stderr: 'a b\n',
      });
    });

    it('passes input that a program does not read', async () => {
      const { exitCode } = await host.exec('true', [], { input: 'x'.repeat(1_000_000) });
      expect(exitCode).toBe(0);
    });

    it('names a program that is missing', async () => {
      await expect(host.exec('no-such-program', [])).rejects.toThrow(ProgramMissingError);
    });

    it('ends a program by the signal', async () => {
      const stopping = new AbortController();
      const running = host.exec('sleep', ['1000'], { signal: stopping.signal });
      stopping.abort(new Error('enough'));
      await expect(running).rejects.toThrow('enough');
    });

    it.each(['127.0.0.1', '::1'])('listens, and connects, at %s', async (address) => {
      const server = createServer((socket) => socket.end('hello'));
      await host.listen(server, address, 0);
      const socket = await host.connect(address, portOf(server.address()));
      const chunks: unknown[] = [];
      socket.on('data', (chunk) => chunks.push(String(chunk)));
      await once(socket, 'close');
      expect(chunks.join('')).toBe('hello');
      server.close();
    });

    it('lets HTTP servers listen', async () => {
      const server = createHttpServer((_, response) => response.end('fine'));
      await host.listen(server, '127.0.0.1', 0);
      const socket = await host.connect('127.0.0.1', portOf(server.address()));
      socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      const chunks: unknown[] = [];
      socket.on('data', (chunk) => chunks.push(String(chunk)));
      await once(socket, 'close');
      expect(chunks.join('')).toMatch(/^HTTP\/1.1 200 OK[^]*fine$/);
      server.close();
    });

    it('says by the code why it cannot listen or connect', async () => {
      const server = createServer();
      await host.listen(server, '127.0.0.1', 0);
      const port = portOf(server.address());
      await expect(host.listen(createServer(), '127.0.0.1', port)).rejects.toMatchObject({
        code: 'EADDRINUSE',
      });
      await expect(host.datagram('192.0.2.77', 0)).rejects.toMatchObject({ code: 'EADDRNOTAVAIL' });
      const closed = once(server, 'close');
      server.close();
      await closed;
      await expect(host.connect('127.0.0.1', port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    });

    it('opens UDP sockets', async () => {
      const [one, other] = [await host.datagram('127.0.0.1', 0), await host.datagram('127.0.0.1', 0)];
      const heard = once(other, 'message');
      one.send('hello', other.address().port, '127.0.0.1');
      expect(String((await heard)[0])).toBe('hello');
      one.close();
      other.close();
    });

    it('reads kernel parameters, and knows which there are not', async () => {
      expect(await host.sysctl.get('net/ipv4/ip_forward')).toMatch(/^[01]$/);
      expect(await host.sysctl.get('net/ipv4/no_such_thing')).toBeUndefined();
      await expect(host.sysctl.set('net/ipv4/no_such_thing', '1')).rejects.toMatchObject({ code: 'ENOENT' });
    });
  });
}

function portOf(address: ReturnType<ReturnType<typeof createServer>['address']>): number {
  if (address === null || typeof address === 'string') throw new Error('it does not listen');
  return address.port;
}
