import { jsonEqual } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { Event, ObjectReference } from '../../objects/types/core.generated.ts';
import { type FieldError, invalid, required } from '../validation/field-errors.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../generic/metadata.ts';
import { isQualifiedName, nameIsDNSSubdomain, nameIsPathSegment } from '../../objects/names.ts';
import type { Strategy, SharedStorage } from '../generic/strategy.ts';

/** An Event of events.k8s.io may lack members that core/v1 always has. */
type GivenEvent = KubeObject & Partial<Event>;

const maxReportingInstance = 128;
const maxAction = 128;
const maxReason = 128;
const maxNote = 1024;

const shared: Omit<Strategy<Event>, 'validateCreate' | 'validateUpdate'> = {
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: true,
  deleteReturnsObject: false,
  defaultGarbageCollectionPolicy: 'Unsupported',
  setDefaults: () => undefined,
  prepareForCreate: () => undefined,
  prepareForUpdate: () => undefined,
  fields: (event: Event) => eventFields(event),
};

/** The rules of core/v1 Events: little is checked, for old clients (`ValidateEventCreate`). */
export const coreEventStrategy: Strategy<Event> = {
  ...shared,
  validateCreate(event) {
    const errors = validateAnyEvent(event, 'reportingComponent');
    if (errors.length > 0) return errors;
    return validateObjectMeta(event.metadata, { namespaced: true, nameRule: nameIsPathSegment });
  },
  validateUpdate: (event) => validateAnyEvent(event, 'reportingComponent'),
};

/** The rules of events.k8s.io/v1 Events, on their stored form. */
export const newEventStrategy: Strategy<Event> = {
  ...shared,
  validateCreate: (event) => [
    ...validateAnyEvent(event, 'reportingController'),
    ...validateObjectMeta(event.metadata, { namespaced: true, nameRule: nameIsDNSSubdomain }),
    ...validateSeries(event),
    ...validateNewFields(event),
  ],
  validateUpdate: (event, old) => [
    ...validateAnyEvent(event, 'reportingController'),
    ...validateObjectMetaUpdate(event.metadata, old.metadata),
    ...(jsonEqual(event.series, old.series) ? [] : validateSeries(event)),
    ...validateUnchanged(event, old),
  ],
};

/**
 * The rules of every version (`legacyValidateEvent`). `controllerPath` is the field of the reporting controller in the
 * version.
 */
function validateAnyEvent(event: GivenEvent, controllerPath: string): FieldError[] {
  const errors: FieldError[] = [];
  const namespace = event.metadata.namespace ?? '';
  const involved = event.involvedObject?.namespace ?? '';
  const wrongNamespace = () =>
    errors.push(invalid('involvedObject.namespace', involved, 'does not match event.namespace'));
  if (isZero(event.eventTime)) {
    if (involved === '' ? namespace !== '' && namespace !== 'default' : namespace !== involved)
      wrongNamespace();
  } else {
    if (involved === '' && namespace !== 'default' && namespace !== 'kube-system') wrongNamespace();
    const controller = event.reportingComponent ?? '';
    if (controller === '') errors.push(required(controllerPath));
    for (const message of isQualifiedName(controller)) {
      errors.push(invalid(controllerPath, controller, message));
    }
    pushTextErrors(errors, 'reportingInstance', event.reportingInstance, maxReportingInstance);
    pushTextErrors(errors, 'action', event.action, maxAction);
    pushTextErrors(errors, 'reason', event.reason, maxReason);
    if (Buffer.byteLength(event.message ?? '') > maxNote) {
      errors.push(invalid('message', '', `can have at most ${maxNote} characters`));
    }
  }
  return errors;
}

function pushTextErrors(errors: FieldError[], path: string, text = '', max: number): void {
  if (text === '') errors.push(required(path));
  if (Buffer.byteLength(text) > max) errors.push(invalid(path, '', `can have at most ${max} characters`));
}

/** Fields that only new-style events must have, and fields that they must not have. */
function validateNewFields(event: Event): FieldError[] {
  const errors: FieldError[] = [];
  const type = event.type ?? '';
  if (isZero(event.eventTime)) errors.push(required('eventTime'));
  if (type !== 'Normal' && type !== 'Warning') errors.push(invalid('type', '', `has invalid value: ${type}`));
  const unset = (path: string) => errors.push(invalid(path, '', 'needs to be unset'));
  if (!isZero(event.firstTimestamp)) unset('firstTimestamp');
  if (!isZero(event.lastTimestamp)) unset('lastTimestamp');
  if ((event.count ?? 0) !== 0) unset('count');
  if ((event.source?.component ?? '') !== '' || (event.source?.host ?? '') !== '') unset('source');
  return errors;
}

function validateSeries({ series }: Event): FieldError[] {
  const errors: FieldError[] = [];
  if (series === undefined) return errors;
  if ((series.count ?? 0) < 2) errors.push(invalid('series.count', '', 'should be at least 2'));
  if (isZero(series.lastObservedTime)) errors.push(required('series.lastObservedTime'));
  return errors;
}

/** Only the series of a new-style event changes. kube-apiserver compares `reason` twice, and so do we. */
function validateUnchanged(event: GivenEvent, old: GivenEvent): FieldError[] {
  const errors: FieldError[] = [];
  const compare = (path: string, value: unknown, before: unknown) => {
    if (!jsonEqual(value, before)) errors.push(invalid(path, value, 'field is immutable'));
  };
  compare('involvedObject', goReference(event.involvedObject ?? {}), goReference(old.involvedObject ?? {}));
  compare('reason', event.reason ?? '', old.reason ?? '');
  compare('message', event.message ?? '', old.message ?? '');
  compare('source', goSource(event.source), goSource(old.source));
  compare('firstTimestamp', event.firstTimestamp ?? null, old.firstTimestamp ?? null);
  compare('lastTimestamp', event.lastTimestamp ?? null, old.lastTimestamp ?? null);
  compare('count', event.count ?? 0, old.count ?? 0);
  compare('reason', event.reason ?? '', old.reason ?? '');
  compare('type', event.type ?? '', old.type ?? '');
  compare('eventTime', event.eventTime ?? null, old.eventTime ?? null);
  compare('action', event.action ?? '', old.action ?? '');
  compare('related', event.related && goReference(event.related), old.related && goReference(old.related));
  compare('reportingController', event.reportingComponent ?? '', old.reportingComponent ?? '');
  compare('reportingInstance', event.reportingInstance ?? '', old.reportingInstance ?? '');
  return errors;
}

/** Internal types have no JSON names: errors show Go's. */
function goReference(reference: ObjectReference): Record<string, string> {
  const { kind = '', namespace = '', name = '', uid = '' } = reference;
  const { apiVersion = '', resourceVersion = '', fieldPath = '' } = reference;
  return {
    Kind: kind,
    Namespace: namespace,
    Name: name,
    UID: uid,
    APIVersion: apiVersion,
    ResourceVersion: resourceVersion,
    FieldPath: fieldPath,
  };
}

function goSource({ component = '', host = '' }: NonNullable<Event['source']> = {}): Record<string, string> {
  return { Component: component, Host: host };
}

function isZero(time: string | null | undefined): boolean {
  return time === undefined || time === null || time === '';
}

function eventFields(event: GivenEvent): Record<string, string> {
  const { involvedObject: involved = {}, source = {} } = event;
  const component = event.reportingComponent ?? '';
  return {
    'involvedObject.kind': involved.kind ?? '',
    'involvedObject.namespace': involved.namespace ?? '',
    'involvedObject.name': involved.name ?? '',
    'involvedObject.uid': involved.uid ?? '',
    'involvedObject.apiVersion': involved.apiVersion ?? '',
    'involvedObject.resourceVersion': involved.resourceVersion ?? '',
    'involvedObject.fieldPath': involved.fieldPath ?? '',
    reason: event.reason ?? '',
    reportingComponent: component,
    source: source.component ?? component,
    type: event.type ?? '',
  };
}

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
