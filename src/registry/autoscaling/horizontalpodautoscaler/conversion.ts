/**
 * Autoscaling/v1 HorizontalPodAutoscalers: they are stored as autoscaling/v2, and fields that v1 lacks are kept in
 * annotations (`apis/autoscaling/v1/conversion.go`).
 */
import type {
  HPAScalingRules,
  HorizontalPodAutoscalerBehavior,
  MetricSpec,
  MetricStatus,
} from '../../../objects/types/autoscaling.generated.ts';
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { at, listAt, numberAt, recordAt, textAt } from '../../../objects/read.ts';
import type { SharedStorage } from '../../generic/strategy.ts';
import { isQuantity, newMetric, newReading, oldMetric, oldReading } from './old-metrics.ts';

const prefix = 'autoscaling.alpha.kubernetes.io/';
const annotationOf = {
  metrics: `${prefix}metrics`,
  behavior: `${prefix}behavior`,
  currentMetrics: `${prefix}current-metrics`,
  conditions: `${prefix}conditions`,
} as const;

/** How autoscaling/v1 shares the storage of autoscaling/v2. */
export const sharedWithHpaV2: SharedStorage = {
  group: 'autoscaling',
  version: 'v2',
  plural: 'horizontalpodautoscalers',
  toStored,
  fromStored,
};

function toStored(object: KubeObject): KubeObject {
  const annotations = { ...object.metadata.annotations };
  const spec = { ...recordAt(object, 'spec') };
  const status = { ...recordAt(object, 'status') };
  const { targetCPUUtilizationPercentage: target } = spec;
  delete spec['targetCPUUtilizationPercentage'];
  const metrics: unknown[] = parsedList(annotations[annotationOf.metrics]).map(newMetric);
  if (typeof target === 'number') metrics.push(cpuMetric(target));
  if (metrics.length > 0) spec['metrics'] = metrics;
  const behavior = parsed(annotations[annotationOf.behavior]);
  if (isRecord(behavior)) spec['behavior'] = readBehavior(renamed(behavior, lowerFirst));
  const { currentCPUUtilizationPercentage: current } = status;
  delete status['currentCPUUtilizationPercentage'];
  const readings = parsedList(annotations[annotationOf.currentMetrics]).map(newReading);
  if (readings.length > 0) status['currentMetrics'] = readings;
  else if (typeof current === 'number') {
    const resource = { name: 'cpu', current: { averageUtilization: current } };
    status['currentMetrics'] = [{ type: 'Resource', resource }];
  }
  const conditions = parsedList(annotations[annotationOf.conditions]).map(readCondition);
  if (conditions.length > 0) status['conditions'] = conditions;
  for (const name of Object.values(annotationOf)) Reflect.deleteProperty(annotations, name);
  return assembled(object, 'autoscaling/v2', annotations, spec, status);
}

function fromStored(object: KubeObject): KubeObject {
  const annotations = { ...object.metadata.annotations };
  const { metrics: _metrics, behavior, ...spec } = recordAt(object, 'spec');
  const { currentMetrics: _readings, conditions, ...status } = recordAt(object, 'status');
  const metrics: Partial<MetricSpec>[] = listAt(object, 'spec', 'metrics').filter(isRecord);
  const cpu = metrics.find(isCpuUse);
  if (cpu !== undefined) {
    spec['targetCPUUtilizationPercentage'] = numberAt(cpu, 'resource', 'target', 'averageUtilization');
  }
  const others = metrics.filter((metric) => !isCpuUse(metric)).map(oldMetric);
  if (others.length > 0) annotations[annotationOf.metrics] = JSON.stringify(others);
  if (isRecord(behavior)) {
    annotations[annotationOf.behavior] = JSON.stringify(renamed(behavior, upperFirst));
  }
  const readings: Partial<MetricStatus>[] = listAt(object, 'status', 'currentMetrics').filter(isRecord);
  if (readings.length > 0)
    annotations[annotationOf.currentMetrics] = JSON.stringify(readings.map(oldReading));
  const use = readings
    .filter((reading) => at(reading, 'resource', 'name') === 'cpu')
    .map((reading) => at(reading, 'resource', 'current', 'averageUtilization'))
    .find((value) => typeof value === 'number');
  if (use !== undefined) status['currentCPUUtilizationPercentage'] = use;
  if (Array.isArray(conditions) && conditions.length > 0) {
    annotations[annotationOf.conditions] = JSON.stringify(conditions);
  }
  return assembled(object, 'autoscaling/v1', annotations, spec, status);
}

function cpuMetric(averageUtilization: number): MetricSpec {
  return { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } } };
}

function isCpuUse({ type, resource }: Partial<MetricSpec>): boolean {
  return type === 'Resource' && resource?.name === 'cpu' && resource.target.averageUtilization !== undefined;
}

function assembled(
  object: KubeObject,
  apiVersion: string,
  annotations: Record<string, string>,
  spec: JsonRecord,
  status: JsonRecord,
): KubeObject {
  const metadata = { ...object.metadata };
  if (Object.keys(annotations).length > 0) metadata.annotations = annotations;
  else delete metadata.annotations;
  const whole: KubeObject & { spec: JsonRecord; status: JsonRecord } = { ...object, metadata, spec, status };
  if (object.apiVersion !== undefined) whole.apiVersion = apiVersion;
  return whole;
}

function parsed(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // Annotations with other content are ignored.
    return undefined;
  }
}

function parsedList(text: string | undefined): JsonRecord[] {
  const value = parsed(text);
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/** Only members of the right types: annotations can have any content. */
function readBehavior(given: unknown): HorizontalPodAutoscalerBehavior {
  const scaleUp = readRules(at(given, 'scaleUp'));
  const scaleDown = readRules(at(given, 'scaleDown'));
  return { ...(scaleUp === undefined ? {} : { scaleUp }), ...(scaleDown === undefined ? {} : { scaleDown }) };
}

function readRules(given: unknown): HPAScalingRules | undefined {
  if (!isRecord(given)) return undefined;
  const { stabilizationWindowSeconds: seconds, selectPolicy, tolerance, policies } = given;
  return {
    ...(typeof seconds === 'number' ? { stabilizationWindowSeconds: seconds } : {}),
    ...(typeof selectPolicy === 'string' ? { selectPolicy } : {}),
    ...(isQuantity(tolerance) ? { tolerance } : {}),
    ...(Array.isArray(policies)
      ? {
          policies: policies.map((policy) => ({
            type: textAt(policy, 'type'),
            value: numberAt(policy, 'value'),
            periodSeconds: numberAt(policy, 'periodSeconds'),
          })),
        }
      : {}),
  };
}

function readCondition(given: JsonRecord): JsonRecord {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => typeof value === 'string'));
}

/** The annotation of the behavior uses Go's field names, as its type has no JSON names. */
function renamed(value: unknown, name: (old: string) => string): unknown {
  if (Array.isArray(value)) return value.map((each) => renamed(each, name));
  if (!isRecord(value)) return value;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(members.map(([key, member]) => [name(key), renamed(member, name)]));
}

function upperFirst(name: string): string {
  return name.slice(0, 1).toUpperCase() + name.slice(1);
}

function lowerFirst(name: string): string {
  return name.slice(0, 1).toLowerCase() + name.slice(1);
}
