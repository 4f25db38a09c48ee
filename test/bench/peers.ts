/**
 * servicenet beside the programs that it replaces, in one run on one machine: `npm run bench:peers [-- part …]`, by
 * default all parts but `many`, which takes minutes. `npm run build` makes what is measured. The first run builds the
 * peers by the go command, which takes an hour; with `--alone`, they are left out. All traffic stays in a network
 * namespace of its own. An ordinary user may make it, and measures all but kube-proxy with Services.
 */
import { machines } from '../cluster/addresses.ts';
import { program, type ProgramName } from '../cluster/programs.ts';
import { missingFor, missingProgram } from '../network/support/gate.ts';
import { isInside, podAddress, runInside } from './own-network.ts';
import { api } from './peers/api.ts';
import { type Compared, lineOf, packages, type Part, print, progress } from './peers/compared.ts';
import { dns } from './peers/dns.ts';
import { loadBalancer } from './peers/load-balancer.ts';
import { memory } from './peers/memory.ts';
import { nodes } from './peers/nodes.ts';
import { router } from './peers/router.ts';
import { services } from './peers/services.ts';
import { start } from './peers/start.ts';
import { many } from './peers/up.ts';

const usual = { memory, dns, start, api, router, nodes, services, 'load-balancer': loadBalancer };
const parts: Readonly<Record<string, Part>> = { ...usual, many };

const words = process.argv.slice(2);
const isAlone = words.includes('--alone');
const asked = words.filter((word) => word !== '--alone');
const unknown = asked.filter((word) => parts[word] === undefined);
if (unknown.length > 0) {
  refuse(`no such part: ${unknown.join(', ')}; there are ${Object.keys(parts).join(', ')}`);
}
const chosen = (asked.length > 0 ? asked : Object.keys(usual)).flatMap((name) => {
  const part = parts[name];
  return part === undefined ? [] : [{ name, part }];
});

if (!isInside()) {
  prepare();
  runInside([podAddress, machines.cp.ipv4], { BENCH_DIST: '1' });
}
const rows: Compared[] = [];
const failed: string[] = [];
for (const { name, part } of chosen) {
  try {
    const measured = await part.measure(isAlone);
    rows.push(...measured);
    for (const row of measured) progress(lineOf(row));
  } catch (error) {
    failed.push(name);
    progress(`${name} failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  }
}
await print(rows);
if (failed.length > 0) {
  process.stdout.write(`not measured: ${failed.join(', ')}, see above\n`);
  process.exitCode = 1;
}

/** Builds the peers. What this machine lacks is named, and nothing is measured. */
function prepare(): void {
  const peers = isAlone ? [] : chosen.flatMap(({ part }) => part.peers);
  const isPackage = (name: string): name is keyof typeof packages => name in packages;
  const ofDebian = new Set([...chosen.flatMap(({ part }) => part.needs), ...peers.filter(isPackage)]);
  const toBuild = new Set(peers.filter((name): name is ProgramName => !isPackage(name)));
  const forRoot =
    isAlone || process.getuid?.() === 0 ? [] : chosen.flatMap(({ part }) => part.rootPeer ?? []);
  const missing = [
    ...forRoot.map((name) => `root, for ${name}`),
    missingFor('user'),
    ...[...ofDebian].map((name) => missingProgram(name, packages[name])),
    ...(toBuild.size > 0 ? [missingProgram('go', 'golang, or go.dev')] : []),
  ].filter((name) => name !== '');
  if (missing.length > 0) refuse(`missing: ${missing.join(', ')}`);
  for (const name of toBuild) {
    progress(`the program ${name}`);
    program(name);
  }
}

function refuse(text: string): never {
  process.stderr.write(`${text}\n`);
  process.exit(1);
}
