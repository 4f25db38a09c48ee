import { once } from 'node:events';
import { renameSync, rmSync, statSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import type { Logger } from 'pino';
import { connectToUp, lineFrom, reachUp } from '../host/control-client.ts';
import type { Tuple } from '../network/flows/conntrack.ts';
import type { SeenConnection } from '../network/path/way.ts';
import { at, isRecord, listAt, numberAt, textAt } from '../objects/json.ts';
import type { Target } from './protocol.ts';
import type { ClusterNetwork, Entered } from './cluster-network.ts';
import { errorMessage } from '../objects/status.ts';

/** Bytes of a path that Linux has room for (`struct sockaddr_un`). */
const maxPathBytes = 107;
/** Bytes that wait to be sent to a viewer; above, flows are dropped and counted. */
const maxUnread = 4 * 1024 * 1024;
/** Flows that are known, for a viewer that does not say how many. */
const usualLast = 200;

/**
 * Removes the socket of an `up` that was killed.
 *
 * @returns whether one was there, or an `up` runs that listens; false: neither.
 * @throws the system's error where it cannot be looked at.
 */
export async function clearControl(path: string): Promise<'killed' | 'running' | false> {
  const found = await connectToUp(path);
  if (found === 'none') return false;
  if (found === 'killed') {
    await rm(path, { force: true });
    return found;
  }
  found.destroy();
  return 'running';
}

/** What an `up` has for the commands beside it. */
export interface Controlled {
  /** Undefined: there is none. */
  readonly network: ClusterNetwork | undefined;
  /** The link to its page; undefined: it has none. */
  readonly pageLink: string | undefined;
}

/** The answering of `servicenet run`, `page` and `flows`. */
export interface ControlServer {
  /** Ends it, and removes its socket unless another `up` has put its own there. */
  close(): Promise<void>;
}

/**
 * Answers `servicenet run`: a line of JSON, `{"where":…,"folder":…}`, is answered with a line, `{"words":[…]}` or
 * `{"error":…}`; `servicenet page`: `{"page":{}}` with `{"link":…}`; a connection that was tried: `{"see":…}` with
 * `{"seen":[…]}`; and `servicenet flows`, until it goes away: `{"flows":…}` ({@link serveFlows}). The names stay: they
 * and `up` may be of different versions. The location is kept for as long as the connection. Only the user of this
 * process can connect. A socket that is there is replaced.
 *
 * @returns undefined where the path is too long.
 * @throws the system's error.
 */
export async function serveControl(
  path: string,
  controlled: Controlled,
  log: Logger,
): Promise<ControlServer | undefined> {
  // Node.js removes the path that it listened at, even if another process has it by then: the socket is made beside it.
  const made = `${path}.${process.pid}`;
  if (Buffer.byteLength(made) > maxPathBytes) {
    log.warn({ path }, 'no servicenet run: the path of the kubeconfig is too long for a socket beside it');
    return undefined;
  }
  // Without a turn of the event loop between the calls: `up` begins to be busy when it comes here.
  rmSync(made, { force: true });
  const server = createServer((socket) => {
    serve(socket, controlled).catch((error: unknown) => {
      const message = errorMessage(error);
      // A client may go away before it has asked, and the network while its program runs.
      if (socket.writable) socket.end(`${JSON.stringify({ error: message })}\n`);
      else log.debug({ err: error }, 'a servicenet run has gone away');
    });
  });
  // The file is made in this call: there is no moment at which others could connect.
  const mask = process.umask(0o177);
  server.listen(made);
  process.umask(mask);
  await once(server, 'listening');
  server.on('error', (error) => log.warn({ err: error }, 'a servicenet run could not be accepted'));
  const { ino } = statSync(made);
  renameSync(made, path);
  return {
    close: async () => {
      server.close();
      const present = await stat(path).catch(() => undefined);
      if (present?.ino === ino) await rm(path, { force: true });
    },
  };
}

async function serve(socket: Socket, { network, pageLink }: Controlled): Promise<void> {
  socket.on('error', () => undefined);
  // `once` would reject for a connection that is reset before the promise is awaited.
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const request: unknown = JSON.parse(await lineFrom(socket));
  if (isRecord(request) && isRecord(request['page'])) {
    const link = pageLink === undefined ? { error: 'it has no page (--page=off)' } : { link: pageLink };
    socket.end(`${JSON.stringify(link)}\n`);
    return;
  }
  if (isRecord(request) && isRecord(request['flows'])) {
    if (network === undefined) throw new Error('flows need the cluster network of up, and this one has none');
    await serveFlows(socket, network, request['flows'], closed);
    return;
  }
  if (isRecord(request) && isRecord(request['see'])) {
    const seen = network === undefined ? [] : await network.see(tupleIn(request['see']));
    socket.end(`${JSON.stringify({ seen })}\n`);
    return;
  }
  const target = isRecord(request) ? request['where'] : undefined;
  if (!isTarget(target)) throw new Error('a request has a member "where"');
  if (network === undefined) throw new Error('this servicenet up has no cluster network');
  const folder = isRecord(request) ? request['folder'] : undefined;
  const entered: Entered = await network.enter(target, typeof folder === 'string' ? folder : undefined);
  socket.write(`${JSON.stringify({ words: entered.argv })}\n`);
  await closed;
  await entered.release();
}

/**
 * Answers a viewer of flows until it goes away: one line of JSON with those that are known, `{"known":[…]}`, then one for
 * each of what comes, `{"flows":[…],"lost":0}`. `lost` counts those that were left out since the viewer came.
 *
 * @param request its members are those of a filter (`readFlowFilter`), and `last`.
 * @throws {Error} where there can be no flows.
 */
async function serveFlows(
  socket: Socket,
  network: ClusterNetwork,
  request: unknown,
  closed: Promise<unknown>,
): Promise<void> {
  // Loaded late: `run`, `page` and the start of `up` load this file, too.
  const { readFlowFilter } = await import('../network/flows/flow.ts');
  let untold = 0;
  let hasKnown = false;
  const early: string[] = [];
  const write = (line: object): void => void socket.write(`${JSON.stringify(line)}\n`);
  const last = at(request, 'last') === undefined ? usualLast : numberAt(request, 'last');
  const looking = await network.watchFlows(readFlowFilter(request), last, (news) => {
    if (news === undefined) {
      socket.end(`${JSON.stringify({ error: 'the cluster network has ended' })}\n`);
    } else if (!hasKnown) early.push(JSON.stringify(news));
    else if (socket.writableLength > maxUnread) untold += news.flows.length;
    else write({ flows: news.flows, lost: news.lost + untold });
  });
  try {
    write({ known: looking.known });
    for (const line of early) socket.write(`${line}\n`);
    hasKnown = true;
    await closed;
  } finally {
    await looking.end();
  }
}

function tupleIn(request: unknown): Tuple {
  return {
    ...{ source: textAt(request, 'source'), sourcePort: numberAt(request, 'sourcePort') },
    ...{
      destination: textAt(request, 'destination'),
      destinationPort: numberAt(request, 'destinationPort'),
    },
  };
}

/** Both ends are ours, though perhaps of different versions. */
function isTarget(value: unknown): value is Target {
  return isRecord(value) && typeof value['kind'] === 'string';
}

/** A location that the `up` at a socket has prepared. */
export interface Prepared {
  /** The command line before the program. */
  readonly argv: readonly string[];
  /** Gives the location up. */
  end(): void;
}

/**
 * Asks the `up` at a socket for a location, for a program that begins in the folder of this process. Removes the socket
 * of one that was killed.
 *
 * @throws {Error} where none listens, or there is no such target.
 */
export async function askControl(path: string, target: Target): Promise<Prepared> {
  const socket = await reachUp(path);
  socket.write(`${JSON.stringify({ where: target, folder: process.cwd() })}\n`);
  const answer: unknown = JSON.parse(await lineFrom(socket));
  const argv = isRecord(answer) ? answer['words'] : undefined;
  if (Array.isArray(argv)) return { argv: argv.map(String), end: () => void socket.destroy() };
  socket.destroy();
  throw new Error(isRecord(answer) ? String(answer['error']) : 'no answer came');
}

/**
 * Asks the `up` at a socket what its nodes know of a connection of TCP.
 *
 * @returns undefined where it does not tell: it is of another version, or has no such program.
 */
export async function askSeen(
  path: string,
  connection: Tuple,
): Promise<readonly SeenConnection[] | undefined> {
  const socket = await reachUp(path);
  socket.on('error', () => undefined);
  socket.write(`${JSON.stringify({ see: connection })}\n`);
  const answer: unknown = JSON.parse(await lineFrom(socket));
  socket.destroy();
  return isRecord(answer) && 'seen' in answer ? listAt(answer, 'seen').filter(isSeen) : undefined;
}

function isSeen(value: unknown): value is SeenConnection {
  return textAt(value, 'node') !== '' && textAt(value, 'sent', 'destination') !== '';
}

/** Asks the `up` at a socket for the link to its page; undefined where none listens, or it has none. */
export async function askPageLink(path: string): Promise<string | undefined> {
  const socket = await connectToUp(path);
  if (socket === 'none' || socket === 'killed') return undefined;
  socket.on('error', () => undefined);
  socket.write(`${JSON.stringify({ page: {} })}\n`);
  const answer: unknown = JSON.parse(await lineFrom(socket));
  socket.destroy();
  const link = isRecord(answer) ? answer['link'] : undefined;
  return typeof link === 'string' ? link : undefined;
}
