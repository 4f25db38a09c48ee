/**
 * What is made of an EgressRouter, and what its status says (cluster-network-operator `pkg/controller/egress_router` and
 * `bindata/egress-router`). PURE.
 */
import { egressRouterPlugin } from '../../../network/egress/egress-router.ts';
import { parseAddress, parseCidr } from '../../../objects/address.ts';
import type { Condition, KubeObject, OwnerReference } from '../../../objects/meta.ts';
import { controllerOf } from '../../../objects/pods.ts';
import type { Deployment } from '../../../objects/types/apps.generated.ts';
import type { EgressRouter, RedirectRule } from '../../../objects/types/openshift.ts';
import type { NetworkAttachmentDefinition } from '../../../objects/types/openshift.ts';
import { transitionTime } from '../../../objects/meta.ts';

/** The same for every EgressRouter: two of them in one namespace overwrite each other's objects. */
export const attachmentName = 'egress-router-cni-nad';
/** See {@link attachmentName}. */
export const deploymentName = 'egress-router-cni-deployment';

/** The labels of a router's Pods, by which a Service finds them. */
const labels = { app: 'egress-router-cni' };
/** It sleeps: the plugin does all the work. The operator takes the image of its release. */
const image = 'quay.io/openshift/origin-egress-router-cni:latest';

/** What is made of an EgressRouter. */
export interface RouterObjects {
  readonly attachment: NetworkAttachmentDefinition;
  readonly deployment: Pick<Deployment, 'apiVersion' | 'kind' | 'metadata' | 'spec'>;
}

/** The objects of an EgressRouter; undefined without an address. An address that is none is left empty, as the operator does. */
export function routerObjects(router: EgressRouter): RouterObjects | undefined {
  const [first] = router.spec.addresses;
  if (first === undefined) return undefined;
  const { redirectRules = [], fallbackIP = '' } = router.spec.redirect ?? {};
  const gateway = parseAddress(first.gateway ?? '') === undefined ? '' : (first.gateway ?? '');
  const { namespace = '' } = router.metadata;
  const ownerReferences = [ownerReference(router)];
  const config = {
    cniVersion: '0.4.0',
    type: egressRouterPlugin,
    name: attachmentName,
    ip: {
      addresses: [parseCidr(first.ip) === undefined ? '' : first.ip],
      destinations: redirectRules.map(destinationOf),
      ...(fallbackIP === '' ? {} : { fallbackIP }),
      gateway,
    },
    log_file: '/tmp/egress-router-log',
    log_level: 'debug',
  };
  return {
    attachment: {
      apiVersion: 'k8s.cni.cncf.io/v1',
      kind: 'NetworkAttachmentDefinition',
      metadata: { name: attachmentName, namespace, ownerReferences },
      spec: { config: JSON.stringify(config) },
    },
    deployment: {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: deploymentName, namespace, labels, ownerReferences },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: {
          metadata: {
            labels,
            annotations: {
              'target.workload.openshift.io/management': '{"effect": "PreferredDuringScheduling"}',
              'k8s.v1.cni.cncf.io/networks': JSON.stringify([
                { name: attachmentName, 'default-route': [gateway] },
              ]),
            },
          },
          spec: {
            containers: [
              {
                ...{ name: 'egress-router-cni-pod', image, command: ['/bin/sh', '-c', 'sleep infinity'] },
                terminationMessagePolicy: 'FallbackToLogsOnError',
              },
            ],
          },
        },
      },
    },
  };
}

function destinationOf({ port, protocol, destinationIP, targetPort }: RedirectRule): string {
  const target = targetPort === undefined ? '' : ` ${targetPort}`;
  return `${port} ${protocol} ${destinationIP}${target}`;
}

function ownerReference({ metadata: { name = '', uid = '' } }: EgressRouter): OwnerReference {
  const apiVersion = 'network.operator.openshift.io/v1';
  return { apiVersion, kind: 'EgressRouter', name, uid, controller: true };
}

/** The inputs of the status besides the EgressRouter: all of its namespace. */
export interface RouterSurroundings {
  /** The present objects of the two names. */
  readonly attachment: KubeObject | undefined;
  readonly deployment: Deployment | undefined;
  /** Names of the other EgressRouters. */
  readonly others: readonly string[];
  /** Why its objects could not be applied. */
  readonly failure?: string;
}

type Said = Pick<Condition, 'status' | 'reason' | 'message'>;

/** OpenShift leaves the status empty: the messages name servicenet as their source. */
const label = 'Said by servicenet; OpenShift says nothing here.';

/**
 * The conditions of an EgressRouter, servicenet's addition. Available: there is a Pod for it. Degraded: what is wrong with
 * the EgressRouter.
 *
 * @param around after its own objects were applied.
 * @param now RFC 3339.
 */
export function routerConditions(
  router: EgressRouter,
  around: RouterSurroundings,
  now: number,
): readonly Condition[] {
  const fault = faultOf(router, around);
  const ok: Said = { status: 'False', reason: 'AsExpected', message: '' };
  const said = {
    Available: availability(router, around, fault),
    Degraded: fault === undefined ? ok : { status: 'True' as const, ...fault },
  };
  return Object.entries(said).map(([type, { status, reason, message: text }]) => {
    const message = [text, label].filter((part) => part !== '').join(' ');
    const lastTransitionTime = transitionTime(router.status?.conditions, { type, status }, now);
    return { type, status, reason, message, lastTransitionTime };
  });
}

type Fault = Pick<Condition, 'reason' | 'message'>;

function faultOf(
  { metadata, spec: { addresses } }: EgressRouter,
  { attachment, deployment, others, failure }: RouterSurroundings,
): Fault | undefined {
  const [first] = addresses;
  if (first === undefined) {
    return { reason: 'NoAddresses', message: 'spec.addresses is empty: nothing is made.' };
  }
  const { ip, gateway } = first;
  const reason = 'InvalidAddress';
  if (parseCidr(ip) === undefined) {
    const message = `spec.addresses[0].ip "${ip}" is no address with a prefix length: no Pod can start.`;
    return { reason, message };
  }
  if (gateway !== undefined && parseAddress(gateway) === undefined) {
    return { reason, message: `spec.addresses[0].gateway "${gateway}" is no address: no Pod can start.` };
  }
  if (failure !== undefined) {
    return { reason: 'EgressRouterError', message: `Its objects cannot be applied: ${failure}.` };
  }
  const owners = [attachment, deployment].flatMap((object) => {
    const owner = object === undefined ? undefined : controllerOf(object);
    return owner === undefined || owner.uid === metadata.uid ? [] : [owner.name];
  });
  const rivals = [...new Set([...others, ...owners])];
  if (rivals.length === 0) return undefined;
  return {
    reason: 'RouterNameCollision',
    message: `${rivals.join(', ')} of the same namespace has ${attachmentName} and ${deploymentName} too: the last one applied has them. Keep one EgressRouter a namespace.`,
  };
}

function availability(
  { metadata }: EgressRouter,
  { attachment, deployment }: RouterSurroundings,
  fault: Fault | undefined,
): Said {
  const isOwn = [attachment, deployment].every(
    (object) => object !== undefined && controllerOf(object)?.uid === metadata.uid,
  );
  if (!isOwn || fault?.reason === 'NoAddresses') {
    const missing = { reason: 'ObjectsMissing', message: 'Its objects are applied every five minutes.' };
    return { status: 'False', ...(fault ?? missing) };
  }
  const available = deployment?.status.conditions?.find(({ type }) => type === 'Available');
  if (available?.status === 'True') return { status: 'True', reason: 'AsExpected', message: '' };
  const { reason = 'MinimumReplicasUnavailable', message = '' } = available ?? {};
  return { status: 'False', reason, message };
}
