/** The process that answers browsers (`listener.ts` starts it with the first one), and looks at the cluster for them. */
import { Socket } from 'node:net';
import { getPriority, setPriority } from 'node:os';
import { systemClock, type Timer } from '../client/clock.ts';
import { createLog } from '../telemetry/log.ts';
import { connectionChecker, type PacketPlace, type TriedConnection } from '../view/trace-connection.ts';
import { openPageOf, type Page } from './page.ts';
import { type FromPage, isToPage, type ToPage } from './protocol.ts';

/** It gives way to the cluster that it shows. */
const niceness = 5;
/** Without a connection for so long, it ends. */
const idleMs = 600_000;

const log = createLog({ level: 'error', format: 'json' });
/** Packets that are being sent, by their numbers. */
const asked = new Map<number, PromiseWithResolvers<TriedConnection>>();
let page: Promise<Page> | undefined;
let count = 0;
let taken = 0;
let idle: Timer | undefined;

function tell(message: FromPage): void {
  // Without a channel the process is about to end.
  process.send?.(message, () => undefined);
}

async function open(place: PacketPlace, address: string, port: number): Promise<TriedConnection> {
  const id = ++count;
  const answer = Promise.withResolvers<TriedConnection>();
  asked.set(id, answer);
  tell({ from: 'check', id, place, address, port });
  return await answer.promise;
}

const checker = connectionChecker((place) =>
  Promise.resolve({ open: (address, port) => open(place, address, port), end: () => undefined }),
);

function waitForIdle(): void {
  idle?.cancel();
  idle = systemClock.after(idleMs, () => {
    page?.then(
      ({ server }) => {
        if (server.connections > 0) waitForIdle();
        else tell({ from: 'idle', taken });
      },
      () => process.exit(1),
    );
  });
}

async function hear(message: ToPage, socket: unknown): Promise<void> {
  switch (message.to) {
    case 'open': {
      const { source, settings } = message;
      const canCheck = settings.cluster.whyNoCheck === undefined;
      page = openPageOf(source, settings, canCheck ? checker : undefined, log);
      waitForIdle();
      return;
    }
    case 'connection': {
      taken++;
      // One that has gone away meanwhile does not come along.
      if (!(socket instanceof Socket)) return;
      socket.on('error', () => socket.destroy());
      (await page)?.server.serve(socket);
      waitForIdle();
      return;
    }
    case 'checked':
      asked.get(message.id)?.resolve(message.tried);
      asked.delete(message.id);
      return;
    case 'checkFailed':
      asked.get(message.id)?.reject(new Error(message.message));
      asked.delete(message.id);
  }
}

// An ordinary user may not take less than it has.
setPriority(Math.max(niceness, getPriority()));
// Ctrl-C on a terminal reaches this process too, which ends with the one that has started it.
process.on('SIGINT', () => undefined);
process.on('message', (message, socket) => {
  if (!isToPage(message)) return;
  hear(message, socket).catch((error: unknown) => {
    log.fatal({ err: error }, 'the page cannot be served');
    process.exit(1);
  });
});
process.on('disconnect', () => process.exit(0));
