/** Subcommands of agnhost that look at files, or only at their words: mounttest, entrypoint-tester (test/images/agnhost). */
import { readFile, stat, statfs, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { AgnhostRun } from './context.ts';

/** Prints the words that it was called with, as Go prints a slice. */
export function entrypointTester(run: AgnhostRun): Promise<void> {
  run.print(`[${run.words.join(' ')}]`);
  run.end(0);
  return Promise.resolve();
}

const initialContent = 'mount-tester new file\n';
/** Of statfs(2). */
const tmpfsMagic = 0x01021994;
/** Milliseconds between two readings of `--file_content_in_loop`. */
const pause = 2000;

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
      if (breaks) run.place.write('stdout', `Unexpected content. Expected: ${initialContent}. Retrying`);
    } catch (error) {
      isRead = false;
      run.print(`Error reading file ${path}: ${goError(error, path)}, retrying`);
    }
    await delay(pause);
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
