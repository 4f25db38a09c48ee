import { readFileSync } from 'node:fs';
import { networksAnnotation } from '../../src/network/attachments/attachments.ts';
import type { Provocation } from '../support/deployed-controllers.ts';
import { describeRights } from '../support/describe-rights.ts';
import { kustomizeWith, parseManifests } from '../support/manifests.ts';
import { call } from '../support/test-server.ts';

const attachments = '/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions';
const pods = '/api/v1/namespaces/default/pods';
const whereabouts = '/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system';
const pools = `${whereabouts}/ippools`;
const reservations = `${whereabouts}/overlappingrangeipreservations`;

/** Pods that come and go, with what the last one of the name has left, a pool that goes, and a Pod whose network is missing. */
const comingAndGoing: Provocation = {
  rounds: 20,
  async begin(client) {
    const config = JSON.stringify({
      type: 'macvlan',
      ipam: { type: 'whereabouts', range: '10.60.0.0/24' },
    });
    await call(client, 'POST', attachments, {
      body: {
        apiVersion: 'k8s.cni.cncf.io/v1',
        kind: 'NetworkAttachmentDefinition',
        metadata: { name: 'lan' },
        spec: { config },
      },
    });
    await make(client, 'lost', 'missing');
  },
  async step(client, round) {
    const name = `web-${Math.floor(round / 10) % 2}`;
    if (round % 10 === 0) {
      await call(client, 'POST', reservations, {
        body: {
          ...{ apiVersion: 'whereabouts.cni.cncf.io/v1alpha1', kind: 'OverlappingRangeIPReservation' },
          metadata: { name: '10.60.0.1' },
          spec: { podref: `default/${name}`, ifname: 'net1' },
        },
      });
      await make(client, name, 'lan');
    }
    if (round % 10 === 8) await call(client, 'DELETE', `${pods}/${name}?gracePeriodSeconds=0`);
    if (round % 40 === 39) await call(client, 'DELETE', `${pools}/10.60.0.0-24`);
  },
  async end(client) {
    for (const name of ['web-0', 'web-1', 'lost']) {
      await call(client, 'DELETE', `${pods}/${name}?gracePeriodSeconds=0`);
    }
    await call(client, 'DELETE', `${attachments}/lan`);
    await call(client, 'DELETE', `${pools}/10.60.0.0-24`);
  },
};

async function make(
  client: Parameters<Provocation['begin']>[0],
  name: string,
  network: string,
): Promise<void> {
  await call(client, 'POST', pods, {
    body: {
      metadata: { name, annotations: { [networksAnnotation]: network } },
      spec: { nodeName: 'node', containers: [{ name: 'main', image: 'nginx' }] },
    },
  });
  await call(client, 'PATCH', `${pods}/${name}/status`, {
    contentType: 'application/merge-patch+json',
    body: { status: { podIP: '10.244.0.9', podIPs: [{ ip: '10.244.0.9' }] } },
  });
}

const definitions = [
  'k8s.cni.cncf.io_network-attachment-definitions.yaml',
  'whereabouts.cni.cncf.io_ippools.yaml',
  'whereabouts.cni.cncf.io_overlappingrangeipreservations.yaml',
].flatMap((file) => parseManifests(readFileSync(`deploy/crds/${file}`, 'utf8')));

describeRights({
  objects: [...definitions, ...kustomizeWith('attachments')],
  chosen: { role: 'servicenet-attachments', controllers: ['network-attachment-controller'], haste: 20 },
  provocation: comingAndGoing,
});
