import { lstat, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { fileProblem, makeDirectories } from '../../apiserver/storage/disk/files.ts';
import { clearControl } from '../../emulation/control-socket.ts';
import { controlSocketPath } from '../../host/control-client.ts';
import { listAt, textAt } from '../../objects/json.ts';
import { handshake } from '../../tls/handshake.ts';

/**
 * The kubeconfig that `up` writes. It belongs to the `up` whose server it leads to, and so does the socket beside it
 * (`emulation/control-socket.ts`), until that server ends: another `up` takes neither.
 */

/** The server of a kubeconfig that an `up` has written. */
interface OwnServer {
  readonly url: string;
  /** PEM of its authority: every start without a data directory makes its own. */
  readonly ca: string;
}

/** A server that was stopped by Ctrl-Z accepts connections, and says nothing. */
const answerTimeoutMs = 3000;

/** What may be replaced. */
interface Leftovers {
  /** The text of the file that is at the path. */
  readonly text: string | undefined;
  /** Whether an `up` was killed, and has left that or its socket. */
  readonly wasKilled: boolean;
}

/**
 * Checks that a kubeconfig may be written to a path: nothing is there, or what an `up` has left that was killed.
 * Removes the socket of that one.
 *
 * @throws {Error} for the file of an `up` that runs, and for one that no `up` has written; the message is for the user.
 */
export async function checkKubeconfig(path: string): Promise<Leftovers> {
  const text = await readPresent(path);
  const server = text === undefined ? undefined : await ownServer(text);
  if (text !== undefined && text.trim() !== '' && server === undefined) {
    throw cannotWrite(path, 'another program has written it');
  }
  const isAlive = server !== undefined && (await answers(server));
  const found = isAlive ? 'running' : await clearControl(controlSocketPath(path));
  if (found === 'running') {
    const to = server === undefined ? '' : `, which leads to ${server.url}`;
    const advice = 'stop it, or start this one with --port 0 --write-kubeconfig <another file>';
    throw new Error(`another servicenet up runs and has the kubeconfig ${path}${to}: ${advice}`);
  }
  return { text, wasKilled: server !== undefined || found === 'killed' };
}

/**
 * Writes a kubeconfig in the place of one that may be replaced ({@link checkKubeconfig}). Only its owner may read it: it
 * holds the administrator's token. Of two that begin at the same time, one gets the path.
 *
 * @throws {Error} as `checkKubeconfig`, and when it cannot be written, with a message for the user.
 */
export async function writeKubeconfig(path: string, text: string): Promise<void> {
  try {
    makeDirectories(resolve(dirname(path)));
    for (;;) {
      const { text: left } = await checkKubeconfig(path);
      if (left !== undefined) await remove(path, (present) => Promise.resolve(present === left));
      try {
        await writeFile(path, text, { mode: 0o600, flag: 'wx' });
        return;
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
      }
    }
  } catch (error) {
    const problem = fileProblem(error, path);
    throw problem === undefined ? error : cannotWrite(path, problem, error);
  }
}

/** Removes a kubeconfig that was written; one that leads to another server by now stays. */
export async function removeKubeconfig(path: string, text: string): Promise<void> {
  await remove(path, async (present) => {
    if (present === text) return true;
    // kubectl may have written to it, such as the namespace of its context.
    const [server, written] = [await ownServer(present), await ownServer(text)];
    return server !== undefined && server.url === written?.url && server.ca === written.ca;
  });
}

/** Whether a file is the kubeconfig of an `up` that runs. */
export async function isOfRunningServer(path: string): Promise<boolean> {
  const text = await readFile(path, 'utf8').catch(() => '');
  const server = await ownServer(text);
  return server !== undefined && (await answers(server));
}

/** Removes a file if its text is the expected one at the moment of its removal. */
async function remove(path: string, isExpected: (text: string) => Promise<boolean>): Promise<void> {
  const aside = `${path}.${process.pid}.old`;
  try {
    if (!(await isExpected(await readFile(path, 'utf8')))) return;
    await rename(path, aside);
    // Another process may have replaced the file since it was read.
    if (await isExpected(await readFile(aside, 'utf8'))) await rm(aside, { force: true });
    else await rename(aside, path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
}

/** The text of a file; undefined where there is none. @throws {Error} where something else than a file is. */
async function readPresent(path: string): Promise<string | undefined> {
  try {
    const found = await lstat(path);
    const file = found.isSymbolicLink() ? await stat(path).catch(() => undefined) : found;
    // A device is not replaced, and what would be read from a pipe is not ours.
    if (file?.isFile() !== true && !found.isDirectory()) throw cannotWrite(path, 'it is no regular file');
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    const problem = fileProblem(error, path);
    throw problem === undefined ? error : cannotWrite(path, problem, error);
  }
}

/** The server of a kubeconfig as `up` writes it: one cluster, named after this program. Undefined for any other text. */
async function ownServer(text: string): Promise<OwnServer | undefined> {
  const { readYaml } = await import('../../client/yaml.ts');
  let config: unknown;
  try {
    [config] = readYaml(text);
  } catch {
    return undefined;
  }
  const [cluster, ...others] = listAt(config, 'clusters');
  if (others.length > 0 || textAt(cluster, 'name') !== 'servicenet') return undefined;
  const ca = Buffer.from(textAt(cluster, 'cluster', 'certificate-authority-data'), 'base64').toString();
  const url = textAt(cluster, 'cluster', 'server');
  return URL.canParse(url) ? { url, ca } : undefined;
}

/** Whether the server with this authority is there; also if it is too busy to answer. */
async function answers({ url, ca }: OwnServer): Promise<boolean> {
  const { hostname, port } = new URL(url);
  const waiting = AbortSignal.timeout(answerTimeoutMs);
  const options = {
    ...{ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 443), ca },
    // The name of a certificate is what its authority has signed: the authority is all that is asked for.
    checkServerIdentity: () => undefined,
  };
  try {
    (await handshake(options, waiting)).destroy();
    return true;
  } catch {
    return waiting.aborted;
  }
}

function cannotWrite(path: string, problem: string, cause?: unknown): Error {
  const advice = '--write-kubeconfig names another file';
  return new Error(`cannot write the kubeconfig ${path}: ${problem}; ${advice}`, { cause });
}
