/** Metrics in the form that annotations of autoscaling/v1 have, and back (`apis/autoscaling/v1/conversion.go`). */
import type {
  MetricSpec,
  MetricStatus,
  MetricValueStatus,
  MetricIdentifier,
  MetricTarget,
} from '../../../objects/types/autoscaling.generated.ts';
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import { parseQuantity } from '../../../objects/quantity.ts';
import { textAt } from '../../../objects/read.ts';

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
export function oldMetric(spec: Partial<MetricSpec>): JsonRecord {
  const source = sourceOf(spec.type);
  const given: MetricSource & JsonRecord = source === undefined ? {} : { ...spec[source] };
  if (source === undefined) return { type: spec.type };
  return { type: spec.type, [source]: oldMembers(source, given, given.target ?? {}, 'target') };
}

/** The status of a metric in v1's form. */
export function oldReading(status: Partial<MetricStatus>): JsonRecord {
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
export function newMetric(old: JsonRecord): JsonRecord {
  const { type, source, members } = parts(old);
  if (source === undefined) return { type };
  const value = values(members, 'target');
  return {
    type,
    [source]: { ...newMembers(source, members), target: { type: targetType(value), ...value } },
  };
}

/** The status of a metric in v2's form. */
export function newReading(old: JsonRecord): JsonRecord {
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
export function isQuantity(value: unknown): value is string {
  if (typeof value !== 'string') return false;
  try {
    parseQuantity(value);
    return true;
  } catch {
    return false;
  }
}
