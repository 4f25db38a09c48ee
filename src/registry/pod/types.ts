/** The parts of core/v1 PodSpec that its rules read; all else is kept as it is. */
import type { ObjectMeta } from '../../objects/meta.ts';
import type {
  Pod as PodObject,
  PodSpec as NetworkPodSpec,
  PodStatus as NetworkPodStatus,
} from '../../objects/pod.ts';

export interface Pod extends PodObject {
  spec: PodSpec;
  status: PodStatus;
}

/** A template of Pods, as workloads have it. */
export interface PodTemplateSpec {
  metadata?: ObjectMeta;
  spec?: PodSpec;
}

export interface PodSpec extends NetworkPodSpec {
  volumes?: Volume[];
  containers?: Container[];
  initContainers?: Container[];
  ephemeralContainers?: Container[];
  resources?: Resources;
  activeDeadlineSeconds?: number;
  dnsPolicy?: string;
  dnsConfig?: DnsConfig;
  /** The old name of serviceAccountName. */
  serviceAccount?: string;
  automountServiceAccountToken?: boolean;
  securityContext?: Record<string, unknown>;
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
  resources?: Resources;
  volumeMounts?: VolumeMount[];
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  startupProbe?: Probe;
  lifecycle?: { postStart?: Handler; preStop?: Handler };
  terminationMessagePath?: string;
  terminationMessagePolicy?: string;
  imagePullPolicy?: string;
  restartPolicy?: string;
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
  valueFrom?: { fieldRef?: FieldSelector };
}

export interface FieldSelector {
  apiVersion?: string;
  fieldPath?: string;
}

export interface VolumeMount {
  name?: string;
  mountPath?: string;
  subPath?: string;
}

export interface Resources {
  limits?: Record<string, string>;
  requests?: Record<string, string>;
}

export interface Handler {
  exec?: unknown;
  httpGet?: { path?: string; scheme?: string; port?: number | string };
  tcpSocket?: unknown;
  grpc?: { port?: number; service?: string };
  sleep?: unknown;
}

export interface Probe extends Handler {
  initialDelaySeconds?: number;
  timeoutSeconds?: number;
  periodSeconds?: number;
  successThreshold?: number;
  failureThreshold?: number;
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

/** A volume is its name and one member that says where it comes from. */
export interface Volume {
  name?: string;
  emptyDir?: object;
  hostPath?: { type?: string };
  secret?: { defaultMode?: number };
  configMap?: { defaultMode?: number };
  downwardAPI?: { defaultMode?: number; items?: { fieldRef?: FieldSelector }[] };
  projected?: { defaultMode?: number; sources?: ProjectedSource[] };
  iscsi?: { iscsiInterface?: string };
  image?: { reference?: string; pullPolicy?: string };
  ephemeral?: { volumeClaimTemplate?: { spec?: { volumeMode?: string } } };
}

interface ProjectedSource {
  serviceAccountToken?: { expirationSeconds?: number };
  downwardAPI?: { items?: { fieldRef?: FieldSelector }[] };
}

export interface PodStatus extends NetworkPodStatus {
  hostIPs?: { ip: string }[];
  nominatedNodeName?: string;
  qosClass?: string;
}
