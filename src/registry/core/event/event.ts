import type { KubeObject } from '../../../objects/meta.ts';
import type { SharedStorage } from '../../generic/strategy.ts';

/** Members of events.k8s.io/v1 Event under their names in core/v1 (`apis/events/v1/conversion.go`). */
const coreNames: ReadonlyMap<string, string> = new Map([
  ['regarding', 'involvedObject'],
  ['note', 'message'],
  ['reportingController', 'reportingComponent'],
  ['deprecatedSource', 'source'],
  ['deprecatedFirstTimestamp', 'firstTimestamp'],
  ['deprecatedLastTimestamp', 'lastTimestamp'],
  ['deprecatedCount', 'count'],
]);
const newNames: ReadonlyMap<string, string> = new Map(
  [...coreNames].map(([newName, coreName]) => [coreName, newName]),
);

/** How events.k8s.io/v1 shares the storage of core/v1. */
export const sharedWithCoreEvents: SharedStorage = {
  group: '',
  version: 'v1',
  plural: 'events',
  toStored: (object) => renamed(object, coreNames, 'v1'),
  fromStored: (object) => renamed(object, newNames, 'events.k8s.io/v1'),
};

/** Every field label of events.k8s.io/v1, with its name in core/v1 (`AddFieldLabelConversionsForEvent`). */
export const eventFieldLabels: ReadonlyMap<string, string> = new Map([
  ...['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map(
    (member): [string, string] => [`regarding.${member}`, `involvedObject.${member}`],
  ),
  ['reportingController', 'reportingComponent'],
  ...['reason', 'source', 'type'].map((label): [string, string] => [label, label]),
]);

function renamed(object: KubeObject, names: ReadonlyMap<string, string>, apiVersion: string): KubeObject {
  const result: KubeObject & Record<string, unknown> = { metadata: object.metadata };
  for (const [name, value] of Object.entries(object)) result[names.get(name) ?? name] = value;
  if (object.apiVersion !== undefined) result.apiVersion = apiVersion;
  return result;
}
