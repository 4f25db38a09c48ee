import type { KubeObject, LabelSelector } from '../../../objects/meta.ts';

/** Autoscaling/v2 HorizontalPodAutoscaler, the form in which it is stored. */
export interface HorizontalPodAutoscaler extends KubeObject {
  spec: HpaSpec;
  status: HpaStatus;
}

export interface HpaSpec {
  scaleTargetRef?: CrossVersionObjectReference;
  minReplicas?: number;
  maxReplicas?: number;
  metrics?: MetricSpec[];
  behavior?: Behavior;
}

export interface HpaStatus {
  observedGeneration?: number;
  lastScaleTime?: string;
  currentReplicas?: number;
  desiredReplicas?: number;
  currentMetrics?: MetricStatus[];
  conditions?: object[];
}

export interface CrossVersionObjectReference {
  kind?: string;
  name?: string;
  apiVersion?: string;
}

export interface Behavior {
  scaleUp?: ScalingRules;
  scaleDown?: ScalingRules;
}

export interface ScalingRules {
  stabilizationWindowSeconds?: number;
  selectPolicy?: string;
  policies?: ScalingPolicy[];
  tolerance?: string;
}

export interface ScalingPolicy {
  type?: string;
  value?: number;
  periodSeconds?: number;
}

/** The source of a metric: the member that `type` names. */
export interface MetricSpec {
  type?: string;
  object?: MetricSource & { describedObject?: CrossVersionObjectReference };
  pods?: MetricSource;
  resource?: MetricSource & { name?: string };
  containerResource?: MetricSource & { name?: string; container?: string };
  external?: MetricSource;
}

export interface MetricSource {
  metric?: MetricIdentifier;
  target?: MetricTarget;
}

export interface MetricIdentifier {
  name?: string;
  selector?: LabelSelector;
}

export interface MetricTarget extends MetricValue {
  type?: string;
}

/** The current or target value of a metric. */
export interface MetricValue {
  value?: string;
  averageValue?: string;
  averageUtilization?: number;
}

/** The last value of a metric. */
export interface MetricStatus {
  type?: string;
  object?: MetricReading & { describedObject?: CrossVersionObjectReference };
  pods?: MetricReading;
  resource?: MetricReading & { name?: string };
  containerResource?: MetricReading & { name?: string; container?: string };
  external?: MetricReading;
}

export interface MetricReading {
  metric?: MetricIdentifier;
  current?: MetricValue;
}
