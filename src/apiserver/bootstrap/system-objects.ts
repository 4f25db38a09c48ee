import { jsonEqual, recordAt, textAt, at } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { Service, ConfigMap } from '../../objects/types/core.generated.ts';
import { StatusError } from '../../objects/status.ts';
import { schedulingGroup, systemPriorityClasses } from '../../registry/scheduling/priorityclass.ts';
import { createObject } from '../rest/create.ts';
import { storageKeyOf, type ServedResource } from '../rest/served-resource.ts';
import { type ServerCore, timestamp } from '../rest/server-core.ts';
import { objectKey, PreconditionError, type Write } from '../storage/storage.ts';
import { systemUser } from '../authentication/users.ts';
import { type FrontProxy, requestHeaderMembers } from '../aggregation/front-proxy.ts';
import { mandatoryFlowSchemas, suggestedFlowSchemas } from '../../registry/flowcontrol/flowschema.ts';
import {
  autoUpdateAnnotation,
  flowcontrolGroup,
  mandatoryPriorityLevels,
  suggestedPriorityLevels,
} from '../../registry/flowcontrol/prioritylevelconfiguration.ts';
import { serviceNameLabel } from '../../objects/endpoints.ts';

/** The configuration of the system objects. */
export interface SystemObjects {
  /** The Service CIDRs of the flags, primary first. */
  readonly serviceCidrs: readonly string[];
  /** The first usable address of the primary range. */
  readonly kubernetesServiceIp: string;
  /** The address at which clients reach the server. */
  readonly advertiseAddress: string;
  readonly port: number;
}

const systemNamespaces = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

/** The interval at which system objects are restored, as in kube-apiserver. */
export const reconcileIntervalMs = 10_000;

/**
 * Creates missing system objects: the system namespaces and priority classes, the ServiceCIDR `kubernetes`, and
 * `default/kubernetes` as Service, Endpoints and EndpointSlice (`pkg/controlplane`). In existing ones, only the address
 * and port of the server are updated.
 */
export async function ensureSystemObjects(core: ServerCore, system: SystemObjects): Promise<void> {
  for (const name of systemNamespaces) {
    await ensureObject(core, '', 'namespaces', '', { metadata: { name } });
  }
  for (const priorityClass of systemPriorityClasses) {
    await ensureObject(core, schedulingGroup, 'priorityclasses', '', structuredClone(priorityClass));
  }
  await ensureServiceCidr(core, system);
  await ensureObject(core, '', 'services', 'default', kubernetesService(system));
  await updateTargetPort(core, system);
  await storeCurrent(core, '', 'endpoints', kubernetesEndpoints(system));
  await storeCurrent(core, 'discovery.k8s.io', 'endpointslices', kubernetesSlice(system));
}

function served(core: ServerCore, group: string, plural: string): ServedResource {
  const resource = core.resources.find(group, 'v1', plural);
  if (resource === undefined) throw new Error(`${plural} are not served`);
  return resource;
}

/** Creates an object unless it exists. */
export async function ensureObject(
  core: ServerCore,
  group: string,
  plural: string,
  namespace: string,
  object: KubeObject,
): Promise<void> {
  const resource = served(core, group, plural);
  const name = object.metadata.name ?? '';
  if (core.storage.getForUpdate(storageKeyOf(resource, namespace, name)) !== undefined) return;
  const complete: KubeObject = { kind: resource.definition.kind, apiVersion: resource.apiVersion, ...object };
  resource.definition.strategy.setDefaults(complete);
  try {
    await createObject(core, resource, {
      object: complete,
      namespace,
      subresource: '',
      user: systemUser,
      dryRun: false,
      warn: () => undefined,
      track: () => undefined,
    });
  } catch (error) {
    // A conflict, or the namespace is being deleted: the next run tries again.
    if (!(error instanceof StatusError)) throw error;
    core.log.warn(
      { object: `${namespace}/${name}`, resource: plural, reason: error.reason, err: error },
      'cannot make a system object yet',
    );
  }
}

async function ensureServiceCidr(core: ServerCore, system: SystemObjects): Promise<void> {
  const cidr: KubeObject & { spec: object } = {
    metadata: { name: 'kubernetes' },
    spec: { cidrs: [...system.serviceCidrs] },
  };
  const resource = served(core, 'networking.k8s.io', 'servicecidrs');
  const key = storageKeyOf(resource, '', 'kubernetes');
  if (core.storage.getForUpdate(key) !== undefined) return;
  await ensureObject(core, 'networking.k8s.io', 'servicecidrs', '', cidr);
  const stored = core.storage.getForUpdate(key);
  if (stored === undefined) return;
  const ready: KubeObject & { status: object } = {
    ...stored.object,
    metadata: { ...stored.object.metadata },
    status: {
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          lastTransitionTime: timestamp(core.now()),
          reason: '',
          message: 'Kubernetes default Service CIDR is ready',
        },
      ],
    },
  };
  await core.storage.commit([{ key, expect: stored.revision, object: ready }]);
}

function kubernetesService(system: SystemObjects): KubeObject & { spec: object } {
  return {
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      labels: { component: 'apiserver', provider: 'kubernetes' },
    },
    spec: {
      ports: [{ name: 'https', protocol: 'TCP', port: 443, targetPort: system.port }],
      clusterIP: system.kubernetesServiceIp,
      clusterIPs: [system.kubernetesServiceIp],
      ipFamilyPolicy: 'SingleStack',
      sessionAffinity: 'None',
      type: 'ClusterIP',
    },
  };
}

function kubernetesEndpoints(system: SystemObjects): KubeObject & { subsets: object[] } {
  return {
    kind: 'Endpoints',
    apiVersion: 'v1',
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' },
    },
    subsets: [
      {
        addresses: [{ ip: system.advertiseAddress }],
        ports: [{ name: 'https', port: system.port, protocol: 'TCP' }],
      },
    ],
  };
}

function kubernetesSlice(
  system: SystemObjects,
): KubeObject & { addressType: string } & Record<'endpoints' | 'ports', object[]> {
  return {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      generation: 1,
      labels: { [serviceNameLabel]: 'kubernetes' },
    },
    addressType: system.advertiseAddress.includes(':') ? 'IPv6' : 'IPv4',
    endpoints: [{ addresses: [system.advertiseAddress], conditions: { ready: true } }],
    ports: [{ name: 'https', protocol: 'TCP', port: system.port }],
  };
}

/**
 * Creates an object that only the server writes, or updates it: the server's address can change with a restart. Stored
 * without validation, which refuses the loopback address of a machine without a network.
 */
async function storeCurrent(
  core: ServerCore,
  group: string,
  plural: string,
  object: KubeObject,
): Promise<void> {
  const resource = served(core, group, plural);
  const { namespace = '', name = '' } = object.metadata;
  const key = storageKeyOf(resource, namespace, name);
  const stored = core.storage.getForUpdate(key);
  if (stored === undefined) {
    object.metadata.uid = core.newUid();
    object.metadata.creationTimestamp = timestamp(core.now());
  } else {
    if (jsonEqual(contentOf(object), contentOf(stored.object))) return;
    object.metadata = { ...stored.object.metadata };
  }
  await commitIgnoringConflicts(core, { key, expect: stored?.revision ?? 'absent', object });
}

function contentOf({ metadata: _metadata, ...content }: KubeObject): object {
  return content;
}

/** Updates the target port of the Service `default/kubernetes`: the server's port can change with a restart. */
async function updateTargetPort(core: ServerCore, { port }: SystemObjects): Promise<void> {
  const stored = core.storage.getForUpdate(objectKey('', 'services', 'default', 'kubernetes'));
  if (stored === undefined || !isService(stored.object)) return;
  const { spec, metadata } = stored.object;
  const [https] = spec.ports ?? [];
  if (https === undefined || https.targetPort === port) return;
  const object: Service = {
    ...stored.object,
    metadata: { ...metadata },
    spec: { ...spec, ports: [{ ...https, targetPort: port }] },
  };
  await commitIgnoringConflicts(core, { key: stored.key, expect: stored.revision, object });
}

/** True for a Service. */
export function isService(object: KubeObject): object is Service {
  return object.kind === 'Service' && 'spec' in object;
}

/** On a conflict the next run tries again. */
async function commitIgnoringConflicts(core: ServerCore, write: Write): Promise<void> {
  try {
    await core.storage.commit([write]);
  } catch (error) {
    if (!(error instanceof PreconditionError)) throw error;
  }
}

const namespace = 'kube-system';
const name = 'extension-apiserver-authentication';
const clientCaKey = 'client-ca-file';

/**
 * Keeps the ConfigMap in which extension API servers find the CAs of clients and of the front proxy
 * (`pkg/controlplane/controller/clusterauthenticationtrust`). Other client CAs in it are kept.
 *
 * @param clientCa PEM.
 */
export async function ensureAuthenticationConfigMap(
  core: ServerCore,
  clientCa: string,
  frontProxy: FrontProxy,
): Promise<void> {
  const stored = core.storage.getForUpdate(objectKey('', 'configmaps', namespace, name));
  const proxy = requestHeaderMembers(frontProxy);
  if (stored === undefined) {
    const map: ConfigMap = { metadata: { name, namespace }, data: { [clientCaKey]: clientCa, ...proxy } };
    await ensureObject(core, '', 'configmaps', namespace, map);
    return;
  }
  const before = recordAt(stored.object, 'data');
  const storedCas = textAt(before, clientCaKey);
  const data = {
    ...before,
    [clientCaKey]: storedCas.includes(clientCa.trim()) ? storedCas : `${storedCas}${clientCa}`,
    ...proxy,
  };
  if (jsonEqual(before, data)) return;
  const object: KubeObject & { data: object } = { ...stored.object, data };
  try {
    await core.storage.commit([{ key: stored.key, expect: stored.revision, object }]);
  } catch (error) {
    // Conflict: the next round checks again.
    if (!(error instanceof PreconditionError)) throw error;
  }
}

interface ObjectWithSpec extends KubeObject {
  readonly spec: object;
}

/** In the order in which kube-apiserver creates them. */
const objects: readonly (readonly [plural: string, list: readonly ObjectWithSpec[]])[] = [
  ['flowschemas', suggestedFlowSchemas],
  ['prioritylevelconfigurations', suggestedPriorityLevels],
  ['flowschemas', mandatoryFlowSchemas],
  ['prioritylevelconfigurations', mandatoryPriorityLevels],
];

/**
 * Creates the FlowSchemas and PriorityLevelConfigurations of every cluster, and restores their specs where the
 * annotation allows it (`pkg/registry/flowcontrol/ensurer`).
 */
export async function ensureFlowControl(core: ServerCore): Promise<void> {
  await Promise.all(
    objects.flatMap(([plural, list]) => list.map(async (object) => ensureSpec(core, plural, object))),
  );
}

async function ensureSpec(core: ServerCore, plural: string, wanted: ObjectWithSpec): Promise<void> {
  const { name = '' } = wanted.metadata;
  const stored = core.storage.getForUpdate(objectKey(flowcontrolGroup, plural, '', name));
  if (stored === undefined) {
    await ensureObject(core, flowcontrolGroup, plural, '', structuredClone(wanted));
    return;
  }
  const { metadata } = stored.object;
  if (metadata.annotations?.[autoUpdateAnnotation] !== 'true') return;
  const storedSpec = at(stored.object, 'spec');
  const spec = withAdministratorsChoice(plural, name, wanted.spec, storedSpec);
  if (jsonEqual(storedSpec, spec)) return;
  const generation = (metadata.generation ?? 0) + 1;
  const object: ObjectWithSpec = { ...stored.object, metadata: { ...metadata, generation }, spec };
  try {
    await core.storage.commit([{ key: stored.key, expect: stored.revision, object }]);
  } catch (error) {
    // Conflict: the next round checks again.
    if (!(error instanceof PreconditionError)) throw error;
  }
}

/** The spec, with the stored `exempt` of the level `exempt`: administrators may choose how much it lends. */
function withAdministratorsChoice(plural: string, name: string, spec: object, storedSpec: unknown): object {
  if (plural !== 'prioritylevelconfigurations' || name !== 'exempt') return spec;
  const exempt = at(storedSpec, 'exempt');
  return exempt === undefined ? spec : { ...spec, exempt };
}
