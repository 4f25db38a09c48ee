/** The fields of core/v1 PodSpec that its rules read; all others are kept. */
import type { LabelSelector, ObjectMeta } from '../../../objects/meta.ts';
import type {
  NodeSelectorTerm,
  Pod as PodObject,
  PodSpec as NetworkPodSpec,
  PodStatus as NetworkPodStatus,
} from '../../../objects/core.generated.ts';
import type { KeyedSelector } from './label-keys.ts';

export interface Pod extends Omit<PodObject, 'spec' | 'status'> {
  spec: PodSpec;
  status: PodStatus;
}

/** The Pod template of a workload. */
export interface PodTemplateSpec {
  metadata?: ObjectMeta;
  spec?: PodSpec;
}

export interface PodSpec extends Omit<
  NetworkPodSpec,
  | 'affinity'
  | 'topologySpreadConstraints'
  | 'volumes'
  | 'containers'
  | 'initContainers'
  | 'ephemeralContainers'
  | 'resources'
  | 'activeDeadlineSeconds'
  | 'dnsPolicy'
  | 'dnsConfig'
  | 'serviceAccount'
  | 'automountServiceAccountToken'
  | 'securityContext'
  | 'shareProcessNamespace'
  | 'hostPID'
  | 'hostIPC'
  | 'hostUsers'
  | 'os'
  | 'overhead'
  | 'hostnameOverride'
  | 'setHostnameAsFQDN'
  | 'tolerations'
  | 'imagePullSecrets'
  | 'hostAliases'
  | 'priorityClassName'
  | 'priority'
  | 'preemptionPolicy'
  | 'enableServiceLinks'
  | 'readinessGates'
  | 'schedulingGates'
  | 'runtimeClassName'
> {
  affinity?: Affinity;
  topologySpreadConstraints?: TopologySpreadConstraint[];
  volumes?: Volume[];
  containers?: Container[];
  initContainers?: Container[];
  ephemeralContainers?: EphemeralContainer[];
  resources?: Resources;
  activeDeadlineSeconds?: number;
  dnsPolicy?: string;
  dnsConfig?: DnsConfig;
  /** The old name of serviceAccountName. */
  serviceAccount?: string;
  automountServiceAccountToken?: boolean;
  securityContext?: PodSecurityContext;
  shareProcessNamespace?: boolean;
  hostPID?: boolean;
  hostIPC?: boolean;
  hostUsers?: boolean;
  os?: { name?: string };
  overhead?: Record<string, string>;
  hostnameOverride?: string;
  setHostnameAsFQDN?: boolean;
  tolerations?: Toleration[];
  imagePullSecrets?: { name?: string }[];
  hostAliases?: { ip?: string; hostnames?: string[] }[];
  priorityClassName?: string;
  priority?: number;
  preemptionPolicy?: string;
  enableServiceLinks?: boolean;
  readinessGates?: { conditionType?: string }[];
  schedulingGates?: { name?: string }[];
  runtimeClassName?: string;
}

export interface Container {
  name: string;
  image?: string;
  ports?: ContainerPort[];
  env?: EnvVar[];
  envFrom?: EnvFromSource[];
  resources?: Resources;
  volumeMounts?: VolumeMount[];
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  startupProbe?: Probe;
  lifecycle?: { postStart?: Handler; preStop?: Handler };
  terminationMessagePath?: string;
  terminationMessagePolicy?: string;
  imagePullPolicy?: string;
  securityContext?: SecurityContext;
  resizePolicy?: { resourceName?: string; restartPolicy?: string }[];
  restartPolicy?: string;
  restartPolicyRules?: { action?: string; exitCodes?: { operator?: string; values?: number[] } }[];
}

/** A container for debugging; it may share the processes of another one. */
export interface EphemeralContainer extends Container {
  targetContainerName?: string;
}

export interface Affinity {
  nodeAffinity?: {
    requiredDuringSchedulingIgnoredDuringExecution?: { nodeSelectorTerms?: NodeSelectorTerm[] };
    preferredDuringSchedulingIgnoredDuringExecution?: { weight?: number; preference?: NodeSelectorTerm }[];
  };
  podAffinity?: PodAffinity;
  podAntiAffinity?: PodAffinity;
}

export interface PodAffinity {
  requiredDuringSchedulingIgnoredDuringExecution?: PodAffinityTerm[];
  preferredDuringSchedulingIgnoredDuringExecution?: { weight?: number; podAffinityTerm?: PodAffinityTerm }[];
}

export interface PodAffinityTerm extends KeyedSelector {
  namespaceSelector?: LabelSelector;
  namespaces?: string[];
  topologyKey: string;
}

export interface TopologySpreadConstraint {
  maxSkew?: number;
  topologyKey?: string;
  whenUnsatisfiable?: string;
  labelSelector?: LabelSelector;
  minDomains?: number;
  nodeAffinityPolicy?: string;
  nodeTaintsPolicy?: string;
  matchLabelKeys?: string[];
}

export interface SeccompProfile {
  type?: string;
  localhostProfile?: string;
}

export interface AppArmorProfile {
  type?: string;
  localhostProfile?: string;
}

export interface PodSecurityContext {
  fsGroup?: number;
  runAsUser?: number;
  runAsGroup?: number;
  supplementalGroups?: number[];
  supplementalGroupsPolicy?: string;
  fsGroupChangePolicy?: string;
  seLinuxChangePolicy?: string;
  sysctls?: { name?: string; value?: string }[];
  seccompProfile?: SeccompProfile;
  appArmorProfile?: AppArmorProfile;
}

export interface SecurityContext {
  capabilities?: { add?: string[]; drop?: string[] };
  privileged?: boolean;
  runAsUser?: number;
  runAsGroup?: number;
  runAsNonRoot?: boolean;
  readOnlyRootFilesystem?: boolean;
  allowPrivilegeEscalation?: boolean;
  procMount?: string;
  seccompProfile?: SeccompProfile;
  appArmorProfile?: AppArmorProfile;
}

export interface ContainerPort {
  name?: string;
  hostPort?: number;
  containerPort: number;
  protocol?: string;
  hostIP?: string;
}

export interface EnvVar {
  name?: string;
  value?: string;
  valueFrom?: {
    fieldRef?: FieldSelector;
    resourceFieldRef?: ResourceSelector;
    configMapKeyRef?: KeySelector;
    secretKeyRef?: KeySelector;
    fileKeyRef?: object;
  };
}

export interface EnvFromSource {
  prefix?: string;
  configMapRef?: { name?: string };
  secretRef?: { name?: string };
}

export interface KeySelector {
  name?: string;
  key?: string;
}

export interface ResourceSelector {
  containerName?: string;
  resource?: string;
}

export interface FieldSelector {
  apiVersion?: string;
  fieldPath?: string;
}

export interface VolumeMount {
  name?: string;
  mountPath?: string;
  subPath?: string;
  subPathExpr?: string;
}

export interface Resources {
  limits?: Record<string, string>;
  requests?: Record<string, string>;
}

export interface Handler {
  exec?: { command?: string[] };
  httpGet?: { path?: string; scheme?: string; port?: number | string; httpHeaders?: { name?: string }[] };
  tcpSocket?: { port?: number | string };
  grpc?: { port?: number; service?: string };
  sleep?: { seconds?: number };
}

export interface Probe extends Handler {
  initialDelaySeconds?: number;
  timeoutSeconds?: number;
  periodSeconds?: number;
  successThreshold?: number;
  failureThreshold?: number;
  terminationGracePeriodSeconds?: number;
}

export interface DnsConfig {
  nameservers?: string[];
  searches?: string[];
  options?: { name?: string; value?: string }[];
}

export interface Toleration {
  key?: string;
  operator?: string;
  value?: string;
  effect?: string;
  tolerationSeconds?: number;
}

/** A volume: its name, and one member for its source. */
export interface Volume {
  name?: string;
  emptyDir?: object;
  hostPath?: { path?: string; type?: string };
  secret?: { secretName?: string; defaultMode?: number; items?: KeyToPath[] };
  configMap?: { name?: string; defaultMode?: number; items?: KeyToPath[] };
  persistentVolumeClaim?: { claimName?: string };
  nfs?: { server?: string; path?: string };
  downwardAPI?: { defaultMode?: number; items?: DownwardFile[] };
  projected?: { defaultMode?: number; sources?: ProjectedSource[] };
  iscsi?: { iscsiInterface?: string };
  image?: { reference?: string; pullPolicy?: string };
  ephemeral?: { volumeClaimTemplate?: { spec?: { volumeMode?: string } } };
}

export interface ProjectedSource {
  secret?: { name?: string; items?: KeyToPath[] };
  configMap?: { name?: string; items?: KeyToPath[] };
  serviceAccountToken?: { expirationSeconds?: number; path?: string };
  downwardAPI?: { items?: DownwardFile[] };
}

export interface KeyToPath {
  key?: string;
  path?: string;
  mode?: number;
}

export interface DownwardFile {
  path?: string;
  fieldRef?: FieldSelector;
  resourceFieldRef?: ResourceSelector;
  mode?: number;
}

export interface PodStatus extends NetworkPodStatus {
  hostIPs?: { ip: string }[];
  nominatedNodeName?: string;
  qosClass?: string;
}
