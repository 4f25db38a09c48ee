import { readFileSync } from 'node:fs';
import type { Provocation } from '../support/deployed-controllers.ts';
import { describeRights } from '../support/describe-rights.ts';
import { kustomizeWith, parseManifests } from '../support/manifests.ts';
import { call } from '../support/test-server.ts';

const routers = '/apis/network.operator.openshift.io/v1/namespaces/default/egressrouters';

const attachments = '/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions';

/** An EgressRouter whose rules change, and that has an address and none in turn. */
const changed: Provocation = {
  rounds: 20,
  async begin(client) {
    await call(client, 'POST', routers, {
      body: {
        apiVersion: 'network.operator.openshift.io/v1',
        kind: 'EgressRouter',
        metadata: { name: 'web' },
        spec: { addresses: [], redirect: {} },
      },
    });
  },
  async step(client, round) {
    const addresses = round % 2 === 0 ? [{ ip: `192.0.2.${round % 250}/24` }] : [];
    await call(client, 'PATCH', `${routers}/web`, {
      contentType: 'application/merge-patch+json',
      body: { spec: { addresses } },
    });
  },
  async end(client) {
    await call(client, 'DELETE', `${routers}/web`);
    await call(client, 'DELETE', `${attachments}/egress-router-cni-nad`);
    await call(client, 'DELETE', '/apis/apps/v1/namespaces/default/deployments/egress-router-cni-deployment');
  },
};

const definitions = [
  'network.operator.openshift.io_egressrouters.yaml',
  'k8s.cni.cncf.io_network-attachment-definitions.yaml',
].flatMap((file) => parseManifests(readFileSync(`deploy/crds/${file}`, 'utf8')));

describeRights({
  objects: [...definitions, ...kustomizeWith('egress-router')],
  chosen: { role: 'servicenet-egress-router', controllers: ['egress-router-controller'], haste: 20 },
  provocation: changed,
  // kube-apiserver asks for it where an apply makes an object.
  askedByAdmission: ['create deployments.apps', 'create network-attachment-definitions.k8s.cni.cncf.io'],
});
