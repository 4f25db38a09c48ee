import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { cgroupFolders } from '../../../src/emulation/containers/resource-limits.ts';
import { isTimeOver } from '../../support/time-over.ts';

/** Who makes the namespaces: root, or an ordinary user inside a user namespace. */
export type Maker = 'root' | 'user';

const isRoot = process.getuid?.() === 0;

/** Before the program of an ordinary user. nobody (65534) where root runs the tests. */
export const asUser: readonly string[] = isRoot
  ? ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
  : [];

const programs = [
  ['unshare', 'util-linux'],
  ['nsenter', 'util-linux'],
  ['setpriv', 'util-linux'],
  ['ip', 'iproute2'],
  ['nft', 'nftables'],
] as const;

/** Names the package of a program that this machine lacks; empty: it has it. */
export function missingProgram(program: string, name: string): string {
  return spawnSync(program, ['--version']).error === undefined ? '' : `${program} (package ${name})`;
}

/** What this machine lacks for networks of a user, or time: then no namespaces are made in vain; empty: nothing. */
export function missingFor(maker: Maker): string {
  if (isTimeOver()) return 'time (SERVICENET_TESTS_UNTIL is over)';
  if (process.platform !== 'linux') return 'Linux';
  const absent = programs
    .map(([program, name]) => missingProgram(program, name))
    .filter((missing) => missing !== '');
  if (absent.length > 0) return absent.join(', ');
  if (maker === 'root') return isRoot ? '' : 'root';
  const words = [...asUser, 'unshare', '-Urnm', '-p', '--fork', 'true'];
  const tried = spawnSync(words[0] ?? '', words.slice(1), { encoding: 'utf8' });
  return tried.status === 0 ? '' : `user namespaces (${tried.stderr.trim()})`;
}

/** The makers, with what is missing for each: a test that is skipped says it in its name. */
export const makers = (['root', 'user'] as const).map((maker) => ({ maker, missing: missingFor(maker) }));

/** The version of the cgroups that this process may make; undefined: none. */
export const cgroupsVersion = madeCgroup();

function madeCgroup(): 1 | 2 | undefined {
  if (process.platform !== 'linux') return undefined;
  const [mounts, own] = ['mountinfo', 'cgroup'].map((name) => readFileSync(`/proc/self/${name}`, 'utf8'));
  const places = cgroupFolders(mounts ?? '', own ?? '');
  if (places === undefined) return undefined;
  const folder = join(places.version === 1 ? places.folders.memory : places.folder, `probe-${process.pid}`);
  try {
    mkdirSync(folder);
    rmdirSync(folder);
    return places.version;
  } catch {
    return undefined;
  }
}
