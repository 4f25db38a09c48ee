import type { DisabledFeature } from '../../generic/disabled-fields.ts';
import type { FieldPath } from '../../generic/strategy.ts';

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
