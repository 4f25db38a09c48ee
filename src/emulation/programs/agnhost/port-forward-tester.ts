/** `agnhost port-forward-tester`: sends chunks to one client, and ends (test/images/agnhost/port-forward-tester). */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { AgnhostRun } from './context.ts';
import { errorMessage } from '../../../objects/error-message.ts';

/** Milliseconds that a client has to take the end before the connection is closed. */
const closingMs = 500;

/** The settings in the environment, by upstream's names. */
export async function portForwardTester(run: AgnhostRun): Promise<void> {
  const { environment } = run.place;
  const text = (name: string): string => environment.get(name) ?? '';
  const number = (name: string): number => {
    const value = Number(text(name));
    if (text(name) !== '' && Number.isInteger(value)) return value;
    throw new Error(`Error parsing ${name} ${JSON.stringify(text(name))}`);
  };
  const bind = text('BIND_ADDRESS');
  const addresses = bind === '' || bind === 'localhost' ? ['127.0.0.1'] : [bind];
  const [chunks, size, interval] = [number('CHUNKS'), number('CHUNK_SIZE'), number('CHUNK_INTERVAL')];
  let isTaken = false;
  const serve = async (socket: Socket): Promise<number> => {
    run.print('Accepted client connection');
    const expected = text('EXPECTED_CLIENT_DATA');
    const [chunk = '', why = 'EOF'] = expected === '' ? [] : await received(socket);
    if (chunk.length !== expected.length) {
      run.print(
        `Expected to read ${expected.length} bytes from client, but got ${chunk.length} instead. err=${why}`,
      );
      return 2;
    }
    if (chunk !== expected) {
      run.print(`Expect to read ${JSON.stringify(expected)}, but got ${JSON.stringify(chunk)}. err=<nil>`);
      return 3;
    }
    if (expected !== '') run.print('Received expected client data');
    socket.resume();
    for (let i = 0; i < chunks; i++) {
      if (i > 0) await delay(interval);
      socket.write('x'.repeat(size));
    }
    run.print('Shutting down connection');
    socket.end();
    await delay(closingMs);
    run.print('Done');
    return 0;
  };
  await run.listen(
    number('BIND_PORT'),
    () =>
      createServer({ allowHalfOpen: true }, (socket) => {
        // Upstream accepts one; later ones are not served.
        if (isTaken) return;
        isTaken = true;
        serve(socket).then(
          (code) => run.end(code),
          (error: unknown) => {
            run.print(String(error));
            run.end(1);
          },
        );
      }),
    addresses,
  );
}

/** The first bytes of a client; none, and why, where it has ended before. */
async function received(socket: Socket): Promise<readonly [chunk: string, why?: string]> {
  const ended = once(socket, 'end').then((): readonly [string, string] => ['', 'EOF']);
  const came = once(socket, 'data').then((chunks: unknown[]): readonly [string] => [String(chunks[0])]);
  return await Promise.race([came, ended]).catch((error: unknown): readonly [string, string] => [
    '',
    errorMessage(error),
  ]);
}
