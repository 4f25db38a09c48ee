import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeStandIns } from '../stand-ins/directory.ts';
import { startAssets } from './assets.ts';
import { startDeployed, startEmbedded } from './embedded.ts';
import type { Target } from './target.ts';

/** How a target is started. */
export interface TargetChoice {
  readonly name: string;
  start(): Promise<Target>;
}

const cidrs = { single: '10.96.0.0/16', dual: '10.96.0.0/16,fd00:10:96::/112' } as const;

/**
 * What the environment chooses: `KUBECONFIG` (with `SERVICENET_E2E_CONTROLLERS=deployed` where a Deployment runs the
 * controllers), `KUBEBUILDER_ASSETS`, else the embedded server with both families and a Deployment. With
 * `SERVICENET_E2E=all`, the suite runs twice more: as if that server were the programs of `KUBEBUILDER_ASSETS`, whose
 * start `assets.test.ts` tests for `npm test`, and with one family.
 */
export function chosenTargets(environment: NodeJS.ProcessEnv): readonly TargetChoice[] {
  const { KUBECONFIG: kubeconfig, KUBEBUILDER_ASSETS: assets } = environment;
  if (kubeconfig !== undefined && kubeconfig !== '') {
    const controllers = environment['SERVICENET_E2E_CONTROLLERS'] === 'deployed' ? 'deployed' : 'suite';
    const stop = (): Promise<void> => Promise.resolve();
    const target: Target = {
      ...{ name: kubeconfig, kubeconfig, endpoints: 'target', controllers, stop },
      identity: 'kubeconfig-user',
    };
    return [{ name: kubeconfig, start: () => Promise.resolve(target) }];
  }
  if (assets !== undefined && assets !== '') {
    return [{ name: `assets in ${assets}`, start: () => startAssets(assets, cidrs.dual) }];
  }
  const deployed = () => startDeployed('both families', cidrs.dual);
  const single = () => startEmbedded('one family', cidrs.single);
  const further = [
    { name: 'stand-ins of KUBEBUILDER_ASSETS', start: startStandIns },
    { name: 'embedded, one family', start: single },
  ];
  return [
    { name: 'embedded, both families, deployed', start: deployed },
    ...(environment['SERVICENET_E2E'] === 'all' ? further : []),
  ];
}

/** The embedded server again, but started as kube-apiserver: there we write the Endpoints, and no Pods run. */
async function startStandIns(): Promise<Target> {
  const directory = mkdtempSync(join(tmpdir(), 'servicenet-stand-ins-'));
  writeStandIns(directory);
  const target = await startAssets(directory, cidrs.dual);
  const stop = async (): Promise<void> => {
    await target.stop();
    rmSync(directory, { recursive: true });
  };
  return { ...target, stop };
}
