import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer, Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Host, ProgramMissingError } from '../../src/host/host.ts';
import { ResidentProgram } from '../../src/host/resident-program.ts';

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

    it('asks for pieces of input as the program reads, and no more of them once it has ended', async () => {
      const pieces = function* (): Generator<string> {
        for (const letter of 'abc') yield letter.repeat(100_000);
      };
      const { stdout } = await host.exec('wc', ['-c'], { input: pieces() });
      expect(stdout.trim()).toBe('300000');
      const endless = function* (): Generator<string> {
        for (let asked = 0; ; asked++) {
          if (asked === 100_000) throw new Error('nobody reads');
          yield 'x'.repeat(1000);
        }
      };
      expect(await host.exec('head', ['-c', '5'], { input: endless() })).toMatchObject({ stdout: 'xxxxx' });
    });

    it('hands over what a program prints in pieces', async () => {
      const pieces: string[] = [];
      const result = await host.exec('sh', ['-c', 'yes ü | head -c 1500000; exit 3'], {
        output: (text) => pieces.push(text),
      });
      expect(result).toEqual({ exitCode: 3, stdout: '', stderr: '' });
      expect(pieces.length).toBeGreaterThan(1);
      expect(pieces.join('')).toBe('ü\n'.repeat(500_000));
    });

    it('ends a program whose input or output throws', async () => {
      const odd = function* (): Generator<string> {
        yield 'one piece';
        throw new Error('no more');
      };
      await expect(host.exec('cat', [], { input: odd() })).rejects.toThrow('no more');
      const output = (): never => {
        throw new Error('not understood');
      };
      await expect(host.exec('sh', ['-c', 'echo x; exec sleep 1000'], { output })).rejects.toThrow(
        'not understood',
      );
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

    describe('a program that stays', () => {
      // Prints who it is and what it was asked.
      const script =
        'while read -r line; do case $line in die) kill -9 $$;; esac; echo "$$ $line"; echo end; done';
      const start = (questionsEach: number): ResidentProgram =>
        new ResidentProgram({ host, program: 'sh', args: ['-c', script], answerEnd: 'end\n', questionsEach });
      const askedIn = async (program: ResidentProgram, question: string): Promise<string> => {
        const [pid = '', ...rest] = (await program.ask(`${question}\n`)).trim().split(' ');
        expect(rest.join(' ')).toBe(question);
        return pid;
      };

      it('answers what it is asked in order, and begins anew after so many questions', async () => {
        const program = start(3);
        const former = await Promise.all(['a', 'b c', 'd'].map((question) => askedIn(program, question)));
        expect(new Set(former).size).toBe(1);
        expect(await askedIn(program, 'e')).not.toBe(former[0]);
        await program.close();
      });

      it('fails what waits when it is killed, and starts again with the next question', async () => {
        const program = start(100);
        const former = await askedIn(program, 'a');
        await expect(Promise.all([program.ask('die\n'), program.ask('b\n')])).rejects.toThrow(
          'has ended with 137',
        );
        expect(await askedIn(program, 'c')).not.toBe(former);
        await program.close();
      });

      it('is ended by close once it has answered, and closes where it never ran', async () => {
        const program = start(100);
        await program.close();
        const pid = askedIn(program, 'a');
        await program.close();
        const { exitCode } = await host.exec('sh', ['-c', 'kill -0 "$0" 2>/dev/null', await pid]);
        expect(exitCode).toBe(1);
      });

      it('is said to be missing', async () => {
        const program = new ResidentProgram({
          ...{ host, program: 'no-such-program', args: [], answerEnd: '\n', questionsEach: 1 },
        });
        await expect(program.ask('a\n')).rejects.toThrow(ProgramMissingError);
      });
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

    it.each([
      ['127.0.0.1', '127.0.0.9'],
      ['::1', '::1'],
    ])('connects to %s from %s', async (address, from) => {
      const server = createServer((socket) => socket.end(String(socket.remoteAddress)));
      await host.listen(server, address, 0);
      const socket = await host.connect(address, portOf(server.address()), { from });
      expect(socket.localAddress).toBe(from);
      const chunks: unknown[] = [];
      socket.on('data', (chunk) => chunks.push(String(chunk)));
      await once(socket, 'close');
      expect(chunks.join('')).toBe(from);
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

    it('hears the errors of what it accepts, also where HTTP hands a connection over', async () => {
      const server = createHttpServer();
      const upgraded = once(server, 'upgrade');
      await host.listen(server, '127.0.0.1', 0);
      const client = await host.connect('127.0.0.1', portOf(server.address()));
      client.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
      const accepted: unknown = (await upgraded)[1];
      if (!(accepted instanceof Socket)) throw new Error('no socket came');
      const closed = new Promise((resolve) => accepted.once('close', resolve));
      // Nothing else of this test hears it.
      accepted.destroy(new Error('reset'));
      await closed;
      client.destroy();
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
      await expect(host.connect('127.0.0.1', port, { from: '192.0.2.77' })).rejects.toMatchObject({
        code: 'EADDRNOTAVAIL',
      });
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
