import { describe, expect, it } from 'vitest';
import { create, definitionOf, update } from '../decide.ts';

const coreEvents = definitionOf('Event', '');
const newEvents = definitionOf('Event', 'events.k8s.io');
const regarding = { kind: 'Pod', name: 'p', namespace: 'ns' };
const fresh = {
  eventTime: '2020-01-01T00:00:00.000000Z',
  reportingController: 'example.com/c',
  reportingInstance: 'i',
  action: 'Act',
  reason: 'Why',
  type: 'Normal',
  regarding,
};

describe('an event of events.k8s.io', () => {
  it('is stored as a core event and shown in its own words', () => {
    const { object, stored, errors } = create(newEvents, { ...fresh, note: 'words' });
    expect(errors).toEqual([]);
    expect(stored).toMatchObject({
      apiVersion: 'v1',
      involvedObject: regarding,
      message: 'words',
      reportingComponent: 'example.com/c',
    });
    expect(object).toMatchObject({
      apiVersion: 'events.k8s.io/v1',
      regarding,
      note: 'words',
      deprecatedSource: {},
    });
  });

  it.each([
    [{ regarding }, ['eventTime: Required value', 'type: Invalid value: "": has invalid value: ']],
    [
      { ...fresh, series: { count: 1, lastObservedTime: fresh.eventTime }, deprecatedCount: 2 },
      [
        'series.count: Invalid value: "": should be at least 2',
        'count: Invalid value: "": needs to be unset',
      ],
    ],
    [{ ...fresh, note: 'n'.repeat(1025) }, ['message: Invalid value: "": can have at most 1024 characters']],
    [{ ...fresh, action: '' }, ['action: Required value']],
  ])('%j is refused', (body, errors) => {
    expect(create(newEvents, body).errors).toEqual(errors);
  });

  it('changes nothing but its series; a changed reason is reported twice', () => {
    const old = create(newEvents, fresh).stored;
    const error = 'reason: Invalid value: "Other": field is immutable';
    expect(update(newEvents, old, { ...fresh, reason: 'Other' }).errors).toEqual([error, error]);
    const series = { count: 2, lastObservedTime: fresh.eventTime };
    expect(update(newEvents, old, { ...fresh, series }).errors).toEqual([]);
  });
});

describe('a core event', () => {
  it('is about an object of its own namespace, and little else is checked', () => {
    expect(create(coreEvents, { involvedObject: regarding }).errors).toEqual([]);
    expect(create(coreEvents, { involvedObject: { ...regarding, namespace: 'other' } }).errors).toEqual([
      'involvedObject.namespace: Invalid value: "other": does not match event.namespace',
    ]);
  });

  it('calls the controller by its own name for it', () => {
    const missing = { ...fresh, reportingController: '' };
    expect(create(newEvents, missing).errors[0]).toBe('reportingController: Required value');
    const { regarding: involvedObject, ...rest } = missing;
    expect(create(coreEvents, { ...rest, involvedObject, reportingComponent: '' }).errors[0]).toBe(
      'reportingComponent: Required value',
    );
  });

  it('selects by its fields; the reporter stands in for a source', () => {
    const { stored } = create(newEvents, fresh);
    expect(coreEvents.strategy.fields?.(stored)).toMatchObject({
      'involvedObject.kind': 'Pod',
      reason: 'Why',
      source: 'example.com/c',
    });
    expect(newEvents.fieldLabels?.get('regarding.kind')).toBe('involvedObject.kind');
    expect(newEvents.fieldLabels?.has('involvedObject.kind')).toBe(false);
  });
});
