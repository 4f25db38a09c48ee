import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createTransport } from '../../../src/client/connect.ts';
import { Child } from '../child.ts';
import { PodProcesses } from '../stand-ins/pod-processes.ts';
import type { Target } from './target.ts';

/** `servicenet up` as a process of its own, with simulated nodes and the controllers of a cluster. */
export async function startEmbedded(name: string, serviceCidrs: string): Promise<Target> {
  const directory = mkdtempSync(join(tmpdir(), 'servicenet-e2e-'));
  const kubeconfig = join(directory, 'kubeconfig');
  const child = new Child(process.execPath, [
    ...['src/main.js', 'up', '--port', '0', '--write-kubeconfig', kubeconfig],
    ...['--service-cluster-ip-range', serviceCidrs, '--nodes', '3', '--network=off', '--page=off'],
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

/** The same, and in it what hack/kind-e2e.sh deploys: the Pods of deploy/overlays/kind run the controllers. */
export async function startDeployed(name: string, serviceCidrs: string): Promise<Target> {
  const target = await startEmbedded(name, serviceCidrs);
  const { kubeconfig } = target;
  let processes: PodProcesses | undefined;
  const client = await createTransport({ kind: 'kubeconfig', path: kubeconfig });
  const stop = async (): Promise<void> => {
    try {
      await processes?.end();
    } finally {
      await client.close();
      await target.stop();
    }
  };
  try {
    const kubectl = (...args: readonly string[]): Promise<unknown> =>
      promisify(execFile)('kubectl', ['--kubeconfig', kubeconfig, ...args]);
    await kubectl('apply', '--server-side', '-k', 'deploy/overlays/kind');
    const definition = 'crd/addresspools.servicenet.dev';
    await kubectl('wait', '--for=condition=Established', definition, '--timeout=60s');
    processes = new PodProcesses(client, kubeconfig);
  } catch (error) {
    await stop();
    throw error;
  }
  return { ...target, controllers: 'deployed', stop };
}
