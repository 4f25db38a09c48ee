/** The parameters of operations. The descriptions are not those of Kubernetes. */

/** A parameter in the path or the query. */
export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly type: 'string' | 'integer' | 'boolean';
  readonly description: string;
}

function query(name: string, type: Parameter['type'], description: string): Parameter {
  return { name, in: 'query', type, description };
}

/** A string in the path. */
export function pathParameter(name: string, description: string): Parameter {
  return { name, in: 'path', type: 'string', description };
}

/** Of all operations. */
export const pretty = query('pretty', 'string', 'If true, the answer is indented.');

const dryRun = query('dryRun', 'string', 'All: everything is checked, nothing is stored.');
const fieldManager = query('fieldManager', 'string', 'The manager of the changed fields.');
const fieldValidation = query(
  'fieldValidation',
  'string',
  'What unknown and duplicate fields lead to: Ignore, Warn (a warning each, the default) or Strict (a refusal).',
);

/** Of creates and updates. */
export const writeParameters: readonly Parameter[] = [dryRun, fieldManager, fieldValidation];

/** Of patches. */
export const applyParameters: readonly Parameter[] = [
  ...writeParameters,
  query('force', 'boolean', 'Takes fields over from other managers. For apply patches only.'),
];

/** Of deletes. */
export const deleteParameters: readonly Parameter[] = [
  dryRun,
  query('gracePeriodSeconds', 'integer', 'Seconds the object gets to end; 0 means at once.'),
  query('orphanDependents', 'boolean', 'Older form of propagationPolicy.'),
  query('propagationPolicy', 'string', 'What becomes of dependents: Orphan, Background or Foreground.'),
];

/** Of lists and watches. */
export const listParameters: readonly Parameter[] = [
  query('allowWatchBookmarks', 'boolean', 'Asks for BOOKMARK events, which tell how far a watch is.'),
  query('continue', 'string', 'The page to go on with, as the page before named it.'),
  query('fieldSelector', 'string', 'Only objects with these field values.'),
  query('labelSelector', 'string', 'Only objects with these labels.'),
  query('limit', 'integer', 'At most so many objects; the answer tells how to go on.'),
  query('resourceVersion', 'string', 'The version of the store to list, or to watch from.'),
  query('resourceVersionMatch', 'string', 'Exact or NotOlderThan: how resourceVersion is meant.'),
  query(
    'sendInitialEvents',
    'boolean',
    'Begins a watch with the objects there are, and a bookmark behind them.',
  ),
  query('timeoutSeconds', 'integer', 'Seconds after which a list or watch ends.'),
  query('watch', 'boolean', 'Follows changes instead of listing.'),
];
