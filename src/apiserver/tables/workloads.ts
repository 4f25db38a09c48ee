import type { KubeObject } from '../../objects/meta.ts';
import {
  humanDuration,
  timeSince,
  labelsText,
  selectorText,
  type TableConverter,
  ageColumn,
  ageOf,
  column,
  nameColumn,
  nameOf,
  wideColumn,
  namedTable,
} from './table.ts';
import {
  at,
  conditionStatus,
  listAt,
  numberAt,
  recordAt,
  scalarAt,
  textAt,
  isRecord,
} from '../../objects/json.ts';

/**
 * - Tables of apps, batch, PodDisruptionBudgets and ResourceQuotas.
 * - The tables of autoscalers and Scales (`printers/internalversion/printers.go`, formatHPAMetrics, printScale).
 */

const templateColumns = [
  wideColumn('Containers', 'Names of the containers of the Pod template.'),
  wideColumn('Images', 'Images of the containers of the Pod template.'),
];
const selectorColumn = wideColumn('Selector', 'The Pods that belong to it.');
const integer = { type: 'integer' };

/** The names and the images of a Pod template's containers. */
function containers(object: unknown, ...template: readonly string[]): [string, string] {
  const list = listAt(object, ...template, 'spec', 'containers');
  return [
    list.map((container) => textAt(container, 'name')).join(','),
    list.map((container) => textAt(container, 'image')).join(','),
  ];
}

const template = ['spec', 'template'] as const;

export const deploymentsTable: TableConverter = {
  columns: [
    nameColumn,
    column('Ready', 'Pods that are ready, of those wanted.'),
    column('Up-to-date', 'Pods of the newest template.'),
    column('Available', 'Pods that have been ready for long enough.'),
    ageColumn,
    ...templateColumns,
    selectorColumn,
  ],
  cells: (object, now) => [
    nameOf(object),
    `${numberAt(object, 'status', 'readyReplicas')}/${numberAt(object, 'spec', 'replicas')}`,
    numberAt(object, 'status', 'updatedReplicas'),
    numberAt(object, 'status', 'availableReplicas'),
    ageOf(object, now),
    ...containers(object, ...template),
    selectorText(at(object, 'spec', 'selector')),
  ],
};

const replicaColumns = [
  nameColumn,
  column('Desired', 'Pods that are wanted.', integer),
  column('Current', 'Pods that exist.', integer),
  column('Ready', 'Pods that are ready.', integer),
  ageColumn,
  ...templateColumns,
  selectorColumn,
];

function replicaCells(object: KubeObject, now: number, selector: string): unknown[] {
  return [
    nameOf(object),
    numberAt(object, 'spec', 'replicas'),
    numberAt(object, 'status', 'replicas'),
    numberAt(object, 'status', 'readyReplicas'),
    ageOf(object, now),
    ...containers(object, ...template),
    selector,
  ];
}

export const replicaSetsTable: TableConverter = {
  columns: replicaColumns,
  cells: (object, now) => replicaCells(object, now, selectorText(at(object, 'spec', 'selector'))),
};

export const replicationControllersTable: TableConverter = {
  columns: replicaColumns,
  cells: (object, now) => replicaCells(object, now, labelsText(at(object, 'spec', 'selector'))),
};

export const statefulSetsTable: TableConverter = {
  columns: [
    nameColumn,
    column('Ready', 'Pods that are ready, of those wanted.'),
    ageColumn,
    ...templateColumns,
  ],
  cells: (object, now) => [
    nameOf(object),
    `${numberAt(object, 'status', 'readyReplicas')}/${numberAt(object, 'spec', 'replicas')}`,
    ageOf(object, now),
    ...containers(object, ...template),
  ],
};

export const daemonSetsTable: TableConverter = {
  columns: [
    nameColumn,
    column('Desired', 'Nodes that should run one of its Pods.', integer),
    column('Current', 'Nodes that run at least one of the Pods they should.', integer),
    column('Ready', 'Nodes whose Pod is ready.', integer),
    column('Up-to-date', 'Nodes whose Pod is of the newest template.', integer),
    column('Available', 'Nodes whose Pod has been ready for long enough.', integer),
    column('Node Selector', 'Labels of the nodes that run its Pods.'),
    ageColumn,
    ...templateColumns,
    selectorColumn,
  ],
  cells: (object, now) => [
    nameOf(object),
    numberAt(object, 'status', 'desiredNumberScheduled'),
    numberAt(object, 'status', 'currentNumberScheduled'),
    numberAt(object, 'status', 'numberReady'),
    numberAt(object, 'status', 'updatedNumberScheduled'),
    numberAt(object, 'status', 'numberAvailable'),
    labelsText(at(object, ...template, 'spec', 'nodeSelector')),
    ageOf(object, now),
    ...containers(object, ...template),
    selectorText(at(object, 'spec', 'selector')),
  ],
};

export const jobsTable: TableConverter = {
  columns: [
    nameColumn,
    column('Status', 'Whether it runs or is suspended, or how it ended.'),
    column('Completions', 'Pods that succeeded, of those wanted.'),
    column('Duration', 'Time from its start to its end, or until now.'),
    ageColumn,
    ...templateColumns,
    selectorColumn,
  ],
  cells: (object, now) => [
    nameOf(object),
    jobStatus(object),
    jobCompletions(object),
    jobDuration(object, now),
    ageOf(object, now),
    ...containers(object, ...template),
    selectorText(at(object, 'spec', 'selector')),
  ],
};

function jobStatus(job: KubeObject): string {
  const conditions = listAt(job, 'status', 'conditions');
  const is = (type: string): boolean => conditionStatus(conditions, type) === 'True';
  if (is('Complete')) return 'Complete';
  if (is('Failed')) return 'Failed';
  if (job.metadata.deletionTimestamp !== undefined) return 'Terminating';
  if (is('Suspended')) return 'Suspended';
  if (is('FailureTarget')) return 'FailureTarget';
  return is('SuccessCriteriaMet') ? 'SuccessCriteriaMet' : 'Running';
}

function jobCompletions(job: KubeObject): string {
  const succeeded = numberAt(job, 'status', 'succeeded');
  const completions = at(job, 'spec', 'completions');
  if (typeof completions === 'number') return `${succeeded}/${completions}`;
  const parallelism = numberAt(job, 'spec', 'parallelism');
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function jobDuration(job: KubeObject, now: number): string {
  const start = Date.parse(textAt(job, 'status', 'startTime'));
  if (Number.isNaN(start)) return '';
  const end = Date.parse(textAt(job, 'status', 'completionTime'));
  return humanDuration((Number.isNaN(end) ? now : end) - start);
}

const jobTemplate = ['spec', 'jobTemplate', 'spec'] as const;

export const cronJobsTable: TableConverter = {
  columns: [
    nameColumn,
    column('Schedule', 'When it runs, in cron notation.'),
    column('Timezone', 'The time zone of the schedule.'),
    column('Suspend', 'Whether it is paused.', { type: 'boolean' }),
    column('Active', 'Jobs that run now.', integer),
    column('Last Schedule', 'When it was last due.'),
    ageColumn,
    ...templateColumns,
    selectorColumn,
  ],
  cells(object, now) {
    const last = at(object, 'status', 'lastScheduleTime');
    const suspend = at(object, 'spec', 'suspend');
    return [
      nameOf(object),
      textAt(object, 'spec', 'schedule'),
      textAt(object, 'spec', 'timeZone') || '<none>',
      suspend === undefined ? '<unset>' : suspend === true ? 'True' : 'False',
      listAt(object, 'status', 'active').length,
      last === undefined ? '<none>' : timeSince(last, now),
      ageOf(object, now),
      ...containers(object, ...jobTemplate, 'template'),
      selectorText(at(object, ...jobTemplate, 'selector')),
    ];
  },
};

export const podTemplatesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Containers', 'Names of the containers of the Pod template.'),
    column('Images', 'Images of the containers of the Pod template.'),
    column('Pod Labels', 'Labels of the Pod template.'),
  ],
  cells: (object) => [
    nameOf(object),
    ...containers(object, 'template'),
    labelsText(at(object, 'template', 'metadata', 'labels')),
  ],
};

export const controllerRevisionsTable = namedTable(
  [column('Controller', 'The object that it is a revision of.'), column('Revision', 'Its number.')],
  (object) => {
    const owner = object.metadata.ownerReferences?.find(({ controller }) => controller === true);
    const group = owner?.apiVersion.includes('/') === true ? owner.apiVersion.split('/')[0] : '';
    const kind = owner?.kind.toLowerCase() ?? '';
    return [
      owner === undefined ? '<none>' : `${group === '' ? kind : `${kind}.${group}`}/${owner.name}`,
      numberAt(object, 'revision'),
    ];
  },
);

export const podDisruptionBudgetsTable = namedTable(
  [
    column('Min Available', 'Pods that must stay available.'),
    column('Max Unavailable', 'Pods that may be unavailable.'),
    column('Allowed Disruptions', 'Pods that may be evicted now.', integer),
  ],
  (object) => [
    scalarAt(object, 'spec', 'minAvailable') ?? 'N/A',
    scalarAt(object, 'spec', 'maxUnavailable') ?? 'N/A',
    numberAt(object, 'status', 'disruptionsAllowed'),
  ],
);

export const resourceQuotasTable = namedTable(
  [
    column('Request', 'The usage of quotas of requests and counts.'),
    column('Limit', 'The usage of quotas of limits.'),
  ],
  (object) => {
    const hard = recordAt(object, 'status', 'hard');
    const used = recordAt(object, 'status', 'used');
    const entries = Object.keys(hard)
      .sort()
      .map((name) => ({
        name,
        text: `${name}: ${scalarAt(used, name) ?? '0'}/${scalarAt(hard, name) ?? '0'}`,
      }));
    const isLimit = ({ name }: { name: string }): boolean => name.startsWith('limits.');
    const join = (list: readonly { text: string }[]): string => list.map(({ text }) => text).join(', ');
    return [join(entries.filter((entry) => !isLimit(entry))), join(entries.filter(isLimit))];
  },
);

/** Further targets are counted. */
const shownTargets = 2;
const unknown = '<unknown>';

export const horizontalPodAutoscalersTable = namedTable(
  [
    column('Reference', 'The object that is scaled.'),
    column('Targets', 'The current and the desired value of each metric.'),
    column('MinPods', 'The lowest number of Pods.'),
    column('MaxPods', 'The highest number of Pods.'),
    column('Replicas', 'The number of Pods.'),
  ],
  (object) => [
    `${textAt(object, 'spec', 'scaleTargetRef', 'kind')}/${textAt(object, 'spec', 'scaleTargetRef', 'name')}`,
    targetsOf(object),
    scalarAt(object, 'spec', 'minReplicas') ?? '<unset>',
    numberAt(object, 'spec', 'maxReplicas'),
    numberAt(object, 'status', 'currentReplicas'),
  ],
);

/** The table of the `scale` subresource of all kinds. */
export const scalesTable = namedTable(
  [
    column('Desired', 'The desired number of replicas.', { type: 'integer' }),
    column('Available', 'The number of replicas.', { type: 'integer' }),
  ],
  (object) => [numberAt(object, 'spec', 'replicas'), numberAt(object, 'status', 'replicas')],
);

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
