import {
  grpcCodes,
  grpcServer,
  healthAnswer,
  healthCheckPath,
  healthServiceIn,
} from '../../host/grpc-server.ts';
import { httpServer } from '../../host/http-server.ts';
import type { AgnhostRun } from './context.ts';
import { isIP, isIPv6 } from 'node:net';
import { MessageWriter } from '../../dns/message-writer.ts';
import { type DnsQuery, readQuery } from '../../dns/query.ts';
import { readFile, stat, statfs, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * `agnhost grpc-health-checking`: a server of `grpc.health.v1.Health/Check` (test/images/agnhost/grpc-health-checking).
 * Healthy for `--delay-unhealthy-sec`, or as `/make-serving` and `/make-not-serving` say.
 */
export async function grpcHealthChecking(run: AgnhostRun): Promise<void> {
  const { args } = run;
  const started = performance.now();
  const service = args.text('service');
  const unhealthyAfter = args.number('delay-unhealthy-sec', -1);
  let forced: boolean | undefined;
  const age = (): number => (performance.now() - started) / 1000;
  const isServing = (): boolean => forced ?? (unhealthyAfter < 0 || age() < unhealthyAfter);
  await run.listen(args.number('http-port', 8080), () =>
    httpServer((request, response, { pathname }) => {
      request.resume();
      if (pathname === '/make-serving') forced = true;
      else if (pathname === '/make-not-serving') forced = false;
      else {
        response.writeHead(404).end('404 page not found\n');
        return;
      }
      response.end(`${age()}s`);
    }),
  );
  const port = args.number('port', 5000);
  await run.listen(port, () =>
    grpcServer(({ path, message }) => {
      if (path !== healthCheckPath) return { code: grpcCodes.unimplemented, reason: 'unimplemented' };
      if (healthServiceIn(message) === service) return healthAnswer(isServing());
      return { code: grpcCodes.notFound, reason: 'unknown service' };
    }),
  );
  run.print(`gRPC server starting to listen on :${port}`);
}

/** CoreDNS, which the image of agnhost has too, as far as Kubernetes' tests configure it: the names of one `hosts` block. */

const port = 53;
/** Of CoreDNS' `plugin/hosts`. */
const ttlSeconds = 3600;
/** Plugins that change no answer. */
const silent: ReadonlySet<string> = new Set(['errors', 'log']);
const serverBlocks: ReadonlySet<string> = new Set(['.', '.:53']);

/** Answers names of the file `-conf` by UDP. SERVFAIL for others: `hosts` has no authority to deny them. */
export async function coredns(run: AgnhostRun): Promise<void> {
  const path = run.args.text('conf', 'Corefile');
  const names = hostsOf(path, (await run.container.readFile(path)).toString());
  run.onTerm = () => run.end(0);
  const writer = new MessageWriter();
  const nothing = { authoritative: false, answers: [], authorities: [], additionals: [] };
  await run.receive(port, (message) => {
    const query = readQuery(message);
    if (query === undefined) return undefined;
    if ('refused' in query) return writer.write({ query, rcode: query.refused, ...nothing }, message.length);
    const addresses = names.get(query.name.toLowerCase());
    if (addresses === undefined) return writer.write({ query, rcode: 'SERVFAIL', ...nothing }, query.udpSize);
    const answers = answersTo(query, addresses);
    return writer.write({ query, rcode: 'NOERROR', ...nothing, authoritative: true, answers }, query.udpSize);
  });
  run.print('.:53');
}

function answersTo({ name, type }: DnsQuery, addresses: readonly string[]) {
  return addresses.flatMap((address) => {
    const own = isIPv6(address) ? 'AAAA' : 'A';
    return type === own ? [{ type: own, name, ttl: ttlSeconds, address } as const] : [];
  });
}

/**
 * Addresses by name, in lower case.
 *
 * @throws {Error} in CoreDNS' words for a directive that is not known here.
 */
function hostsOf(path: string, text: string): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  const blocks: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const [first = '', ...rest] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (first === '') continue;
    if (first === '}') blocks.pop();
    else if (blocks.length === 2) {
      if (isIP(first) === 0) continue;
      for (const name of rest) {
        const key = name.toLowerCase().replace(/\.$/, '');
        names.set(key, [...(names.get(key) ?? []), first]);
      }
    } else if (blocks.length === 0 ? serverBlocks.has(first) : first === 'hosts') {
      if (rest.at(-1) === '{') blocks.push(first);
    } else if (!silent.has(first))
      throw new Error(`${path}:${index + 1} - Error during parsing: Unknown directive '${first}'`);
  }
  return names;
}

/** Prints the arguments that it was called with, as Go prints a slice. */
export function entrypointTester(run: AgnhostRun): Promise<void> {
  run.print(`[${run.argv.join(' ')}]`);
  run.end(0);
  return Promise.resolve();
}

const initialContent = 'mount-tester new file\n';
/** Of statfs(2). */
const tmpfsMagic = 0x01021994;
/** Between two readings of `--file_content_in_loop`. */
const pauseMs = 2000;

/** Makes and describes files, in upstream's order: file system, new files, mode, permissions, owner, content. */
export async function mountTest(run: AgnhostRun): Promise<void> {
  const { args } = run;
  process.umask(0);
  let failures = 0;
  const attempt = async (
    flag: string,
    failed: string,
    look: (path: string) => Promise<string>,
  ): Promise<void> => {
    const path = args.text(flag);
    if (path === '') return;
    try {
      run.print(await look(path));
    } catch (error) {
      failures++;
      run.print(`${failed.replace('PATH', JSON.stringify(path))}: ${goError(error, path)}`);
    }
  };
  const content = async (path: string): Promise<string> =>
    `content of file ${JSON.stringify(path)}: ${await readFile(path, 'utf8')}`;
  await attempt('fs_type', 'error from statfs(PATH)', async (path) => {
    const { type } = await statfs(path);
    return `mount type of ${JSON.stringify(path)}: ${type === tmpfsMagic ? 'tmpfs' : type}`;
  });
  for (const mode of ['0644', '0666', '0660', '0777']) {
    await attempt(`new_file_${mode}`, 'error writing new file PATH', async (path) => {
      await writeFile(path, initialContent, { mode: Number.parseInt(mode, 8) });
      return await content(path);
    });
  }
  await attempt('file_mode', 'error from Stat(PATH)', async (path) => {
    const { mode } = await stat(path);
    return `mode of file ${JSON.stringify(path)}: ${goMode(mode)}`;
  });
  await attempt('file_perm', 'error from Stat(PATH)', async (path) => {
    return `perms of file ${JSON.stringify(path)}: ${goMode((await stat(path)).mode & 0o777)}`;
  });
  await attempt('file_owner', 'error from stat(PATH)', async (path) => {
    const { uid, gid } = await stat(path);
    return `owner UID of ${JSON.stringify(path)}: ${uid}\nowner GID of ${JSON.stringify(path)}: ${gid}`;
  });
  await attempt('file_content', 'error reading file content for PATH', content);
  if (!(await readAgain(run, args.text('file_content_in_loop')))) failures++;
  run.end(failures === 0 ? 0 : 1);
}

/** Prints a file again and again, until its content is what mounttest writes, or `--retry_time` seconds are over. */
async function readAgain(run: AgnhostRun, path: string): Promise<boolean> {
  const { args } = run;
  if (path === '') return true;
  const breaks = args.text('break_on_expected_content', 'true') === 'true';
  const end = performance.now() + args.number('retry_time', 180) * 1000;
  let isRead = false;
  while (performance.now() < end) {
    try {
      const text = await readFile(path, 'utf8');
      isRead = true;
      run.print(`content of file ${JSON.stringify(path)}: ${text}`);
      if (breaks && text === initialContent) break;
      if (breaks) run.container.write('stdout', `Unexpected content. Expected: ${initialContent}. Retrying`);
    } catch (error) {
      isRead = false;
      run.print(`Error reading file ${path}: ${goError(error, path)}, retrying`);
    }
    await delay(pauseMs);
  }
  return isRead;
}

/** Go's `FileMode.String`. */
function goMode(mode: number): string {
  const kind = (mode & 0o170000) === 0o040000 ? 'd' : '';
  const special = [
    ...(mode & 0o4000 ? ['u'] : []),
    ...(mode & 0o2000 ? ['g'] : []),
    ...(mode & 0o1000 ? ['t'] : []),
  ].join('');
  const bits = 'rwxrwxrwx'.replaceAll(/./g, (letter, i: number) => (mode & (0o400 >> i) ? letter : '-'));
  return `${kind + special || '-'}${bits}`;
}

/** Go's words for the system's commonest errors. */
function goError(error: unknown, path: string): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const words = new Map([
    ['ENOENT', 'no such file or directory'],
    ['EACCES', 'permission denied'],
    ['EPERM', 'operation not permitted'],
    ['EROFS', 'read-only file system'],
  ]).get(code);
  return words === undefined ? String(error) : `open ${path}: ${words}`;
}
