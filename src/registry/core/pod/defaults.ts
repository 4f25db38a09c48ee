import type {
  Container,
  LifecycleHandler,
  Pod,
  PodSpec,
  PodStatus,
  PodTemplateSpec,
  Probe,
} from '../../../objects/types/core.generated.ts';
import { defaultPullPolicy, setFieldDefaults, setVolumeDefaults } from './volumes.ts';
import type { DisabledFeature } from '../../generic/disabled-fields.ts';
import type { FieldPath } from '../../generic/strategy.ts';

const terminationMessagePath = '/dev/termination-log';
const defaultGraceSeconds = 30;

/** Versioned defaults of a Pod (`core/v1/defaults.go` SetDefaults_Pod and all below it). */
export function setPodDefaults(pod: Partial<Pick<Pod, 'spec' | 'status'>>): void {
  const spec = (pod.spec ??= {});
  // Templates keep a negative one, for historical reasons.
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) spec.terminationGracePeriodSeconds = 1;
  for (const container of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) {
    requestLimits(container);
    if (spec.hostNetwork !== true) continue;
    // On the host's network every container port is a host port.
    for (const port of container.ports ?? []) {
      if ((port.hostPort ?? 0) === 0) port.hostPort = port.containerPort;
    }
  }
  spec.enableServiceLinks ??= true;
  setPodSpecDefaults(spec);
  alignPodIPs((pod.status ??= {}));
}

/** Versioned defaults of a template: fewer than those of a Pod. */
export function setTemplateDefaults(template: PodTemplateSpec): void {
  template.metadata ??= {};
  setPodSpecDefaults((template.spec ??= {}));
}

function setPodSpecDefaults(spec: PodSpec): void {
  if ((spec.dnsPolicy ?? '') === '') spec.dnsPolicy = 'ClusterFirst';
  if ((spec.restartPolicy ?? '') === '') spec.restartPolicy = 'Always';
  if ((spec.schedulerName ?? '') === '') spec.schedulerName = 'default-scheduler';
  spec.securityContext ??= {};
  // A missing list is null: it has no omitempty.
  spec.containers ??= [];
  spec.terminationGracePeriodSeconds ??= defaultGraceSeconds;
  alignServiceAccount(spec);
  for (const volume of spec.volumes ?? []) setVolumeDefaults(volume);
  for (const list of [spec.containers, spec.initContainers, spec.ephemeralContainers]) {
    for (const container of list ?? []) setContainerDefaults(container);
  }
}

/** Both names of the service account are set; the new one has precedence (`SetDefaults_PodSpec`). */
function alignServiceAccount(spec: PodSpec): void {
  const account =
    (spec.serviceAccountName ?? '') === '' ? (spec.serviceAccount ?? '') : spec.serviceAccountName;
  if (account === undefined || account === '') {
    delete spec.serviceAccount;
    delete spec.serviceAccountName;
  } else {
    spec.serviceAccountName = account;
    spec.serviceAccount = account;
  }
}

function setContainerDefaults(container: Container): void {
  container.resources ??= {};
  if ((container.terminationMessagePath ?? '') === '')
    container.terminationMessagePath = terminationMessagePath;
  if ((container.terminationMessagePolicy ?? '') === '') container.terminationMessagePolicy = 'File';
  if ((container.imagePullPolicy ?? '') === '')
    container.imagePullPolicy = defaultPullPolicy(container.image ?? '');
  for (const port of container.ports ?? []) {
    if ((port.protocol ?? '') === '') port.protocol = 'TCP';
  }
  for (const { valueFrom } of container.env ?? []) setFieldDefaults(valueFrom?.fieldRef);
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) {
    if (probe !== undefined) setProbeDefaults(probe);
  }
  setHandlerDefaults(container.lifecycle?.postStart);
  setHandlerDefaults(container.lifecycle?.preStop);
}

function setProbeDefaults(probe: Probe): void {
  probe.timeoutSeconds = orDefault(probe.timeoutSeconds, 1);
  probe.periodSeconds = orDefault(probe.periodSeconds, 10);
  probe.successThreshold = orDefault(probe.successThreshold, 1);
  probe.failureThreshold = orDefault(probe.failureThreshold, 3);
  setHandlerDefaults(probe);
  if (probe.grpc !== undefined) probe.grpc.service ??= '';
}

function setHandlerDefaults(handler: LifecycleHandler | undefined): void {
  if (handler?.httpGet === undefined) return;
  if ((handler.httpGet.path ?? '') === '') handler.httpGet.path = '/';
  if ((handler.httpGet.scheme ?? '') === '') handler.httpGet.scheme = 'HTTP';
}

function orDefault(value: number | undefined, standard: number): number {
  return value === undefined || value === 0 ? standard : value;
}

/** A limit without a request sets the request, in Pods only. */
function requestLimits({ resources }: Container): void {
  if (resources?.limits === undefined) return;
  resources.requests = { ...resources.limits, ...resources.requests };
}

/** `podIP` is the first of `podIPs`; where they differ, the singular has precedence (`SetDefaults_PodStatus`). */
function alignPodIPs(status: PodStatus): void {
  const { podIP = '', podIPs = [] } = status;
  const first = podIPs[0]?.ip ?? '';
  if (podIP !== '' && podIP !== first) status.podIPs = [{ ip: podIP }];
  else if (first !== '') status.podIP = first;
}

const containers: readonly FieldPath[] = [
  ['containers', '*'],
  ['initContainers', '*'],
  ['ephemeralContainers', '*'],
];
const probes = ['livenessProbe', 'readinessProbe', 'startupProbe'];
const handlers: readonly FieldPath[] = [
  ...probes.map((probe) => [probe]),
  ['lifecycle', 'postStart'],
  ['lifecycle', 'preStop'],
];
const volume = ['volumes', '*'];
const source = [...volume, 'projected', 'sources', '*'];
const withItems = ['secret', 'configMap', 'downwardAPI'];

function ofContainers(...paths: readonly FieldPath[]): DisabledFeature {
  return containers.flatMap((container) => paths.map((path) => [...container, ...path]));
}

/** What 1.37 has off by default in the spec of a Pod (`pkg/api/pod/util.go` dropDisabledFields). */
const features: readonly DisabledFeature[] = [
  // AtomicWriteVolumeUserFields
  [
    ...[...withItems, 'projected'].map((kind) => [...volume, kind, 'defaultUser']),
    ...withItems.map((kind) => [...volume, kind, 'items', '*', 'user']),
    ...withItems.map((kind) => [...source, kind, 'items', '*', 'user']),
    ...['serviceAccountToken', 'clusterTrustBundle', 'podCertificate'].map((kind) => [
      ...source,
      kind,
      'user',
    ]),
  ],
  // GenericWorkload
  [['schedulingGroup']],
  // GRPCContainerProbeTLS
  ofContainers(...probes.map((probe) => [probe, 'grpc', 'mode'])),
  // EvictionRequestAPI
  [['evictionResponders']],
  // EmptyDirVolumeMode
  [[...volume, 'emptyDir', 'mode']],
  // VolumeBindMountOptions
  ofContainers(['volumeMounts', '*', 'bindMountOptions']),
  // ContainerStopSignals
  ofContainers(['lifecycle?', 'stopSignal']),
  // H2CContainerProbe
  ofContainers(...handlers.map((handler) => [...handler, 'httpGet', 'protocol'])),
];

/** Named init containers before Pods had a field for them (`DropInitContainerAnnotations`). */
export const initContainerAnnotations = ['pod.beta', 'pod.alpha'].flatMap((start) => [
  `${start}.kubernetes.io/init-containers`,
  `${start}.kubernetes.io/init-container-statuses`,
]);

/** What is off in a Pod or its template. @param path of the template, such as `spec.template`. */
export function disabledPodFeatures(path?: string): readonly DisabledFeature[] {
  const start = path === undefined ? [] : path.split('.');
  return [
    ...features.map((paths) => paths.map((rest) => [...start, 'spec', ...rest])),
    ...initContainerAnnotations.map((key) => [[...start, 'metadata', 'annotations', key]]),
  ];
}

/** The same of a Pod's status (`dropDisabledPodStatusFields`): CSIVolumeHealth, DRANodeAllocatableResources. */
export const disabledStatusFeatures: readonly DisabledFeature[] = [
  [['status', 'volumeHealth']],
  [['status', 'nodeAllocatableResourceClaimStatuses']],
];
