import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { recordAt } from '../../../src/objects/json.ts';
import { metalLbModule, moduleFolder, program, type ProgramName } from '../../cluster/programs.ts';
import { freePort } from '../../support/free-port.ts';
import { Connection } from '../connection.ts';
import { post } from '../many-objects.ts';
import { MeasuredProcess } from '../measured-process.ts';
import type { ServerProcess } from '../server-process.ts';
import { until } from '../until.ts';

const namespace = 'metallb-system';
const group = '/apis/metallb.io/v1beta1';

/** Creates what MetalLB asks for: its CRDs, from its module, a pool that is announced by ARP, and the Pod of a speaker. */
export async function installMetalLb({ target }: ServerProcess): Promise<void> {
  const connection = await Connection.open(target);
  const folder = join(moduleFolder('metallb-controller', metalLbModule), 'config/crd/bases');
  for (const file of await readdir(folder)) {
    const definition: unknown = parse(await readFile(join(folder, file), 'utf8'));
    const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    await post(connection, crds, recordAt(definition));
  }
  await post(connection, '/api/v1/namespaces', { metadata: { name: namespace } });
  await post(connection, `/api/v1/namespaces/${namespace}/pods`, {
    metadata: { name: 'speaker' },
    spec: { nodeName: 'node-0', containers: [{ name: 'speaker', image: 'speaker' }] },
  });
  // Served a moment after their definitions.
  const list = { method: 'GET', path: `${group}/namespaces/${namespace}/ipaddresspools` };
  const isServed = (): Promise<boolean> =>
    connection.request(list).then(
      () => true,
      () => false,
    );
  await until(list.path, isServed);
  await post(connection, `${group}/namespaces/${namespace}/ipaddresspools`, {
    apiVersion: 'metallb.io/v1beta1',
    kind: 'IPAddressPool',
    metadata: { name: 'pool', namespace },
    spec: { addresses: ['198.18.0.0/16'] },
  });
  await post(connection, `${group}/namespaces/${namespace}/l2advertisements`, {
    apiVersion: 'metallb.io/v1beta1',
    kind: 'L2Advertisement',
    metadata: { name: 'all', namespace },
  });
  connection.close();
}

/** Starts MetalLB's controller, whose webhooks for its configuration are off. */
export async function startMetalLbController(
  server: ServerProcess,
  folder: string,
): Promise<MeasuredProcess> {
  return start('metallb-controller', server, folder, ['--webhook-mode=disabled']);
}

/** Starts MetalLB's speaker for `node-0`, with its own BGP and without its gossip. */
export async function startMetalLbSpeaker(server: ServerProcess, folder: string): Promise<MeasuredProcess> {
  return start('metallb-speaker', server, folder, ['--node-name=node-0', '--pod-name=speaker']);
}

async function start(
  name: ProgramName,
  { kubeconfig }: ServerProcess,
  folder: string,
  flags: readonly string[],
): Promise<MeasuredProcess> {
  const common = [`--kubeconfig=${kubeconfig}`, `--namespace=${namespace}`, '--log-level=warn'];
  const port = `--port=${await freePort()}`;
  const log = join(folder, `${name}.log`);
  return new MeasuredProcess(program(name), [...common, port, ...flags], { log });
}
