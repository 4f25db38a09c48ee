import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Writes `etcd` and `kube-apiserver` into a directory, as an envtest archive has them. */
export function writeStandIns(directory: string): void {
  for (const program of ['etcd', 'kube-apiserver']) {
    const file = fileURLToPath(new URL(`${program}.ts`, import.meta.url));
    writeProgram(directory, program, `exec '${process.execPath}' '${file}' "$@"`);
  }
}

/** Writes a program of shell. */
export function writeProgram(directory: string, name: string, script: string): void {
  const file = join(directory, name);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
}
