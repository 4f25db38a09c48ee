import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Transport } from '../../src/client/transport.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { at, listAt } from '../../src/objects/json.ts';
import { applyStrictly, kustomize, kustomizeWith } from '../support/manifests.ts';
import { accountFlags } from './account.ts';
import type { Target } from './targets/target.ts';

/** How a controller is started on a target, and the lease that it takes there. */
export interface ControllerCommand {
  readonly args: readonly string[];
  readonly lease: { readonly namespace: string; readonly name: string };
  /** Where its credentials are, to be removed at the end. */
  readonly directory?: string;
}

/** What the suite wants of every process: hand-overs within seconds, and more in the log. */
const quick = [
  ...['--metrics-bind-address=127.0.0.1:0', '--log-format=json', '--log-level=debug'],
  ...['--leader-elect-lease-duration=3s', '--leader-elect-renew-deadline=2s'],
  '--leader-elect-retry-period=500ms',
];

/** As the target wants it: see {@link Target.identity}. */
export function controllerCommand(target: Target, client: Transport): Promise<ControllerCommand> {
  return target.identity === 'service-account'
    ? asServiceAccount(target, client)
    : Promise.resolve(asKubeconfigUser(target));
}

/** With the rights of the user who runs the suite, and nothing installed. */
function asKubeconfigUser(target: Target): ControllerCommand {
  const lease = { namespace: 'kube-system', name: 'servicenet-e2e' };
  return {
    args: [
      ...['controller', '--kubeconfig', target.kubeconfig, ...quick],
      `--leader-elect-resource-namespace=${lease.namespace}`,
      `--leader-elect-resource-name=${lease.name}`,
    ],
    lease,
  };
}

/**
 * As the Deployment of deploy/base starts it, with its arguments and its service account's rights. The base is
 * applied as users do, server-side; where nothing writes Endpoints, with the component that makes us do so.
 */
async function asServiceAccount(target: Target, client: Transport): Promise<ControllerCommand> {
  const objects = target.endpoints === 'none' ? kustomizeWith('endpoints') : kustomize('deploy/base');
  await applyStrictly(client, objects);
  const { namespace = '', name = '' } = find(objects, 'ServiceAccount').metadata;
  const directory = mkdtempSync(join(tmpdir(), 'servicenet-e2e-account-'));
  const account = await accountFlags(client, target.kubeconfig, directory, { namespace, name });
  const [container] = listAt(find(objects, 'Deployment'), 'spec', 'template', 'spec', 'containers');
  const args = listAt(container, 'args').map((arg) => String(arg).replace('$(POD_NAMESPACE)', namespace));
  const leaseName = args.find((arg) => arg.startsWith('--leader-elect-resource-name='))?.split('=')[1];
  return {
    args: [...args, ...quick, ...account],
    lease: { namespace, name: leaseName ?? '' },
    directory,
  };
}

function find(objects: readonly KubeObject[], kind: string): KubeObject {
  const found = objects.find((object) => at(object, 'kind') === kind);
  if (found === undefined) throw new Error(`deploy/base has no ${kind}`);
  return found;
}
