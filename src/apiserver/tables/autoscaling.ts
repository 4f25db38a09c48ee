/** The tables of autoscalers and Scales (`printers/internalversion/printers.go`, formatHPAMetrics, printScale). */
import { isRecord } from '../../objects/json.ts';
import { at, listAt, numberAt, scalarAt, textAt } from '../../objects/read.ts';
import { type TableConverter, ageColumn, ageOf, column, nameColumn, nameOf } from './table.ts';

/** Further targets are counted. */
const shownTargets = 2;
const unknown = '<unknown>';

export const horizontalPodAutoscalersTable: TableConverter = {
  columns: [
    nameColumn,
    column('Reference', 'The object that is scaled.'),
    column('Targets', 'The current and the desired value of each metric.'),
    column('MinPods', 'The lowest number of Pods.'),
    column('MaxPods', 'The highest number of Pods.'),
    column('Replicas', 'The number of Pods.'),
    ageColumn,
  ],
  cells: (object, now) => [
    nameOf(object),
    `${textAt(object, 'spec', 'scaleTargetRef', 'kind')}/${textAt(object, 'spec', 'scaleTargetRef', 'name')}`,
    targetsOf(object),
    scalarAt(object, 'spec', 'minReplicas') ?? '<unset>',
    numberAt(object, 'spec', 'maxReplicas'),
    numberAt(object, 'status', 'currentReplicas'),
    ageOf(object, now),
  ],
};

/** The table of the `scale` subresource of all kinds. */
export const scalesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Desired', 'The desired number of replicas.', { type: 'integer' }),
    column('Available', 'The number of replicas.', { type: 'integer' }),
    ageColumn,
  ],
  cells: (object, now) => [
    nameOf(object),
    numberAt(object, 'spec', 'replicas'),
    numberAt(object, 'status', 'replicas'),
    ageOf(object, now),
  ],
};

function targetsOf(object: object): string {
  const readings = listAt(object, 'status', 'currentMetrics');
  const targets = metricsOf(object).map((metric, i) => targetOf(metric, readings[i]));
  if (targets.length === 0) return '<none>';
  const shown = targets.slice(0, shownTargets).join(', ');
  const more = targets.length - shownTargets;
  return more > 0 ? `${shown} + ${more} more...` : shown;
}

/** The metrics; in autoscaling/v1 the one that has a member of its own. */
function metricsOf(object: object): readonly unknown[] {
  const averageUtilization = at(object, 'spec', 'targetCPUUtilizationPercentage');
  if (averageUtilization === undefined) return listAt(object, 'spec', 'metrics');
  return [{ type: 'Resource', resource: { name: 'cpu', target: { averageUtilization } } }];
}

function targetOf(metric: unknown, reading: unknown): string {
  const member = memberOf(metric);
  if (member === undefined) return '<unknown type>';
  const target = at(metric, member, 'target');
  const average = scalarAt(target, 'averageValue');
  const read = (name: string) => scalarAt(reading, member, 'current', name) ?? unknown;
  if (member === 'resource' || member === 'containerResource') {
    const name = textAt(metric, member, 'name');
    if (average !== undefined) return `${name}: ${read('averageValue')}/${average}`;
    const now = read('averageUtilization');
    const wanted = scalarAt(target, 'averageUtilization');
    return `${name}: ${now === unknown ? now : `${now}%`}/${wanted === undefined ? '<auto>' : `${wanted}%`}`;
  }
  if (member === 'pods') return `${read('averageValue')}/${average ?? ''}`;
  if (average !== undefined) return `${read('averageValue')}/${average} (avg)`;
  return `${read('value')}/${scalarAt(target, 'value') ?? ''}`;
}

/** The member for the metric's type: `containerResource` for `ContainerResource`. */
function memberOf(metric: unknown): string | undefined {
  const type = textAt(metric, 'type');
  const member = `${type.slice(0, 1).toLowerCase()}${type.slice(1)}`;
  return isRecord(metric) && isRecord(metric[member]) ? member : undefined;
}
