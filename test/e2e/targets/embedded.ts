import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Child } from '../child.ts';
import type { Target } from './target.ts';

/** `servicenet up` as a process of its own, with simulated nodes and the controllers of a cluster. */
export async function startEmbedded(name: string, serviceCidrs: string): Promise<Target> {
  const directory = mkdtempSync(join(tmpdir(), 'servicenet-e2e-'));
  const kubeconfig = join(directory, 'kubeconfig');
  const child = new Child(process.execPath, [
    ...['src/main.ts', 'up', '--port', '0', '--write-kubeconfig', kubeconfig],
    ...['--service-cluster-ip-range', serviceCidrs, '--nodes', '3'],
    ...['--controllers=*,-load-balancer-controller', '--authorization-mode', 'RBAC'],
  ]);
  const stop = async (): Promise<void> => {
    await child.end();
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await child.until(() => child.output.includes('Try it:'));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    ...{ name: `embedded (${name})`, kubeconfig, endpoints: 'target', controllers: 'suite', stop },
    identity: 'service-account',
  };
}
