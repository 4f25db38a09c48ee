/** The table of Pods, whose status is derived from their containers (`printers.go`, printPod). */
import type { KubeObject } from '../../objects/meta.ts';
import { timeSince } from './table.ts';
import { at, conditionStatus, listAt, numberAt, textAt } from '../../objects/json.ts';
import {
  type TableConverter,
  type TableRowCondition,
  ageColumn,
  ageOf,
  column,
  nameColumn,
  nameOf,
  wideColumn,
} from './table.ts';

const succeeded: readonly TableRowCondition[] = [
  { type: 'Completed', status: 'True', reason: 'Succeeded', message: 'The pod has completed successfully.' },
];
const failed: readonly TableRowCondition[] = [
  { type: 'Completed', status: 'True', reason: 'Failed', message: 'The pod failed.' },
];

export const podsTable: TableConverter = {
  columns: [
    nameColumn,
    column('Ready', 'Containers that are ready, of all.'),
    column('Status', 'The state of the Pod, or the reason for it.'),
    column('Restarts', 'How often containers were restarted, and when last.'),
    ageColumn,
    wideColumn('IP', 'The first address of the Pod.'),
    wideColumn('Node', 'The node it is bound to.'),
    wideColumn('Nominated Node', 'The node it gets once other Pods are preempted there.'),
    wideColumn('Readiness Gates', 'Further conditions of readiness that hold, of all.'),
  ],
  cells(object, now) {
    const summary = summarize(object);
    const { restarts, lastRestart } = summary;
    const ago = restarts > 0 && lastRestart !== '' ? ` (${timeSince(lastRestart, now)} ago)` : '';
    const [podIP] = listAt(object, 'status', 'podIPs');
    return [
      nameOf(object),
      `${summary.ready}/${summary.total}`,
      summary.reason,
      `${restarts}${ago}`,
      ageOf(object, now),
      textAt(podIP, 'ip') || '<none>',
      textAt(object, 'spec', 'nodeName') || '<none>',
      textAt(object, 'status', 'nominatedNodeName') || '<none>',
      readinessGates(object),
    ];
  },
  conditions(object) {
    const phase = textAt(object, 'status', 'phase');
    return phase === 'Succeeded' ? succeeded : phase === 'Failed' ? failed : undefined;
  },
};

interface PodSummary {
  ready: number;
  total: number;
  reason: string;
  restarts: number;
  /** RFC 3339; "" when unknown. */
  lastRestart: string;
}

function summarize(pod: KubeObject): PodSummary {
  const phase = textAt(pod, 'status', 'phase');
  const conditions = listAt(pod, 'status', 'conditions');
  const summary: PodSummary = {
    ready: 0,
    total: listAt(pod, 'spec', 'containers').length,
    reason: textAt(pod, 'status', 'reason') || phase,
    restarts: 0,
    lastRestart: '',
  };
  if (conditions.some(isGated)) summary.reason = 'SchedulingGated';
  const { initializing, sidecars } = summarizeInitContainers(pod, summary);
  if (!initializing || conditionStatus(conditions, 'Initialized') === 'True') {
    Object.assign(summary, sidecars);
    summarizeContainers(pod, summary, conditionStatus(conditions, 'Ready') === 'True');
  }
  if (pod.metadata.deletionTimestamp !== undefined) {
    if (textAt(pod, 'status', 'reason') === 'NodeLost') summary.reason = 'Unknown';
    else if (phase !== 'Succeeded' && phase !== 'Failed') summary.reason = 'Terminating';
  }
  return summary;
}

function isGated(condition: unknown): boolean {
  return textAt(condition, 'type') === 'PodScheduled' && textAt(condition, 'reason') === 'SchedulingGated';
}

type Restarts = Pick<PodSummary, 'restarts' | 'lastRestart'>;

/**
 * Adds the init containers to the summary. Those with restartPolicy Always are sidecars.
 *
 * @returns whether the Pod is still initializing, and the restarts of sidecars: afterwards, other init containers do
 *   not count.
 */
function summarizeInitContainers(
  pod: KubeObject,
  summary: PodSummary,
): { initializing: boolean; sidecars: Restarts } {
  const specs = listAt(pod, 'spec', 'initContainers');
  const sidecars = new Set(
    specs.filter((spec) => textAt(spec, 'restartPolicy') === 'Always').map((spec) => textAt(spec, 'name')),
  );
  summary.total += sidecars.size;
  const sidecarRestarts = { restarts: 0, lastRestart: '' };
  let initializing = false;
  for (const [index, status] of listAt(pod, 'status', 'initContainerStatuses').entries()) {
    const sidecar = sidecars.has(textAt(status, 'name'));
    countRestarts(status, summary);
    if (sidecar) countRestarts(status, sidecarRestarts);
    const terminated = at(status, 'state', 'terminated');
    if (terminated !== undefined && numberAt(terminated, 'exitCode') === 0) continue;
    if (sidecar && at(status, 'started') === true) {
      if (at(status, 'ready') === true) summary.ready++;
      continue;
    }
    const waiting = textAt(status, 'state', 'waiting', 'reason');
    if (terminated !== undefined) summary.reason = `Init:${terminationReason(terminated)}`;
    else if (waiting !== '' && waiting !== 'PodInitializing') summary.reason = `Init:${waiting}`;
    else summary.reason = `Init:${index}/${specs.length}`;
    initializing = true;
    break;
  }
  return { initializing, sidecars: sidecarRestarts };
}

function summarizeContainers(pod: KubeObject, summary: PodSummary, ready: boolean): void {
  let running = false;
  let failure = '';
  for (const status of [...listAt(pod, 'status', 'containerStatuses')].reverse()) {
    countRestarts(status, summary);
    const waiting = textAt(status, 'state', 'waiting', 'reason');
    const terminated = at(status, 'state', 'terminated');
    if (waiting !== '') {
      summary.reason = waiting;
    } else if (terminated !== undefined) {
      summary.reason = terminationReason(terminated);
      if (numberAt(terminated, 'exitCode') !== 0) failure = summary.reason;
    } else if (at(status, 'ready') === true && at(status, 'state', 'running') !== undefined) {
      running = true;
      summary.ready++;
    }
  }
  // The first container has completed: the state of the others is shown.
  if (summary.reason !== 'Completed') return;
  if (running && ready) summary.reason = 'Running';
  else if (failure !== '') summary.reason = failure;
  else if (running) summary.reason = 'NotReady';
}

function terminationReason(terminated: unknown): string {
  const reason = textAt(terminated, 'reason');
  if (reason !== '') return reason;
  const signal = numberAt(terminated, 'signal');
  return signal === 0 ? `ExitCode:${numberAt(terminated, 'exitCode')}` : `Signal:${signal}`;
}

function countRestarts(status: unknown, counted: Restarts): void {
  counted.restarts += numberAt(status, 'restartCount');
  const finished = textAt(status, 'lastState', 'terminated', 'finishedAt');
  // Times are in UTC with whole seconds, so they compare as strings.
  if (finished > counted.lastRestart) counted.lastRestart = finished;
}

function readinessGates(pod: KubeObject): string {
  const gates = listAt(pod, 'spec', 'readinessGates');
  if (gates.length === 0) return '<none>';
  const conditions = listAt(pod, 'status', 'conditions');
  const open = gates.filter((gate) => conditionStatus(conditions, textAt(gate, 'conditionType')) === 'True');
  return `${open.length}/${gates.length}`;
}
