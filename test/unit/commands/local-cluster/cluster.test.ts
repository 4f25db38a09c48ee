import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { removeKubeconfig, writeKubeconfig } from '../../../../src/commands/local-cluster/cluster.ts';

test('a kubeconfig is for its owner, and goes with its server only', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'servicenet-kubeconfig-'));
  const path = join(folder, 'made', 'kubeconfig');
  try {
    await writeKubeconfig(path, 'of the first');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    // Another `up` on another port writes to the same place.
    await writeKubeconfig(path, 'of the second');
    await removeKubeconfig(path, 'of the first');
    expect(await readFile(path, 'utf8')).toBe('of the second');
    await removeKubeconfig(path, 'of the second');
    expect(await readdir(dirname(path))).toEqual([]);
    await removeKubeconfig(path, 'of the second');
  } finally {
    await rm(folder, { recursive: true });
  }
});
