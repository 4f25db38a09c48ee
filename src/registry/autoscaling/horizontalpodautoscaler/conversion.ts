import type {
  MetricSpec,
  MetricStatus,
  MetricValueStatus,
  MetricIdentifier,
  MetricTarget,
  HPAScalingRules,
  HorizontalPodAutoscalerBehavior,
} from '../../../objects/types/autoscaling.generated.ts';
import { isRecord, type JsonRecord, textAt, at, listAt, numberAt, recordAt } from '../../../objects/json.ts';
import { parseQuantity } from '../../../objects/formats/quantity.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import type { SharedStorage } from '../../generic/strategy.ts';

/**
 * - Metrics in the form that annotations of autoscaling/v1 have, and back (`apis/autoscaling/v1/conversion.go`).
 * - Autoscaling/v1 HorizontalPodAutoscalers: they are stored as autoscaling/v2, and fields that v1 lacks are kept in
 *   annotations (`apis/autoscaling/v1/conversion.go`).
 */

export interface MetricSource {
  metric?: MetricIdentifier;
  target?: MetricTarget;
}

interface MetricReading {
  metric?: MetricIdentifier;
  current?: MetricValueStatus;
}

/** The member that each type of metric fills. */
const sources = {
  Object: 'object',
  Pods: 'pods',
  Resource: 'resource',
  ContainerResource: 'containerResource',
  External: 'external',
} as const;

type Source = (typeof sources)[keyof typeof sources];

function sourceOf(type: string | undefined): Source | undefined {
  return Object.entries(sources).find(([name]) => name === type)?.[1];
}

/** A metric as v1 writes it. */
function oldMetric(spec: Partial<MetricSpec>): JsonRecord {
  const source = sourceOf(spec.type);
  const given: MetricSource & JsonRecord = source === undefined ? {} : { ...spec[source] };
  if (source === undefined) return { type: spec.type };
  return { type: spec.type, [source]: oldMembers(source, given, given.target ?? {}, 'target') };
}

/** The status of a metric in v1's form. */
function oldReading(status: Partial<MetricStatus>): JsonRecord {
  const source = sourceOf(status.type);
  const given: MetricReading & JsonRecord = source === undefined ? {} : { ...status[source] };
  if (source === undefined) return { type: status.type };
  return { type: status.type, [source]: oldMembers(source, given, given.current ?? {}, 'current') };
}

function oldMembers(
  source: Source,
  given: JsonRecord & Pick<MetricSource, 'metric'>,
  { value, averageValue, averageUtilization }: MetricValueStatus,
  what: 'target' | 'current',
): JsonRecord {
  const { name: metricName, selector } = given.metric ?? {};
  switch (source) {
    case 'object':
      return defined({
        target: given['describedObject'],
        metricName,
        [`${what}Value`]: value ?? '0',
        selector,
        averageValue,
      });
    case 'pods':
      return defined({ metricName, [`${what}AverageValue`]: averageValue, selector });
    case 'external':
      return defined({
        metricName,
        metricSelector: selector,
        [`${what}Value`]: value,
        [`${what}AverageValue`]: averageValue,
      });
    case 'resource':
    case 'containerResource':
      return defined({
        name: given['name'],
        [`${what}AverageUtilization`]: averageUtilization,
        [`${what}AverageValue`]: averageValue,
        container: given['container'],
      });
  }
}

/** A metric of v2, from that of v1. */
function newMetric(old: JsonRecord): JsonRecord {
  const { type, source, members } = parts(old);
  if (source === undefined) return { type };
  const value = values(members, 'target');
  return {
    type,
    [source]: { ...newMembers(source, members), target: { type: targetType(value), ...value } },
  };
}

/** The status of a metric in v2's form. */
function newReading(old: JsonRecord): JsonRecord {
  const { type, source, members } = parts(old);
  if (source === undefined) return { type };
  return { type, [source]: { ...newMembers(source, members), current: values(members, 'current') } };
}

function parts(old: JsonRecord): { type: string; source: Source | undefined; members: JsonRecord } {
  const type = textAt(old, 'type');
  const source = sourceOf(type);
  const members = source === undefined ? undefined : old[source];
  return { type, source, members: isRecord(members) ? members : {} };
}

function values(members: JsonRecord, what: 'target' | 'current'): MetricValueStatus {
  const value = members[`${what}Value`];
  const average = members[`${what}AverageValue`] ?? members['averageValue'];
  const use = members[`${what}AverageUtilization`];
  return {
    ...(isQuantity(value) ? { value } : {}),
    ...(isQuantity(average) ? { averageValue: average } : {}),
    ...(typeof use === 'number' ? { averageUtilization: use } : {}),
  };
}

function targetType({ averageValue, averageUtilization }: MetricValueStatus): string {
  if (averageUtilization !== undefined) return 'Utilization';
  return averageValue === undefined ? 'Value' : 'AverageValue';
}

function newMembers(source: Source, members: JsonRecord): JsonRecord {
  if (source === 'resource') return { name: textAt(members, 'name') };
  if (source === 'containerResource') {
    return { name: textAt(members, 'name'), container: textAt(members, 'container') };
  }
  const selector = members['selector'] ?? members['metricSelector'];
  const metric = { name: textAt(members, 'metricName'), ...(isRecord(selector) ? { selector } : {}) };
  if (source !== 'object') return { metric };
  const described = members['target'];
  return { metric, describedObject: isRecord(described) ? described : {} };
}

function defined(members: JsonRecord): JsonRecord {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** Annotations can have any content: invalid quantities are ignored. */
function isQuantity(value: unknown): value is string {
  if (typeof value !== 'string') return false;
  try {
    parseQuantity(value);
    return true;
  } catch {
    return false;
  }
}

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
