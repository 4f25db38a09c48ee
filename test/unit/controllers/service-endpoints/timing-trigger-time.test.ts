import { describe, expect, it } from 'vitest';
import { TriggerTimes, withTriggerTime } from '../../../../src/controllers/service-endpoints/timing.ts';
import { pod, service } from './samples.ts';

const at = (second: number): string => `2026-01-02T03:05:0${second}Z`;

describe('TriggerTimes', () => {
  it('tells the creation of the Service first, whatever the pods say', () => {
    const times = new TriggerTimes();
    expect(times.observe('ns/web', service(), [pod('p', { transition: at(1) })])).toBe(
      '2026-01-02T03:04:05Z',
    );
    expect(times.observe('ns/web', service(), [pod('p', { transition: at(1) })])).toBeUndefined();
  });

  it('tells the earliest transition that is new', () => {
    const times = new TriggerTimes();
    times.observe('ns/web', service(), [pod('p', { transition: at(1) })]);
    const next = [pod('p', { transition: at(3) }), pod('q', { transition: at(2) }), pod('r')];
    expect(times.observe('ns/web', service(), next)).toBe(at(2));
    expect(times.observe('ns/web', service(), next.slice(0, 1))).toBeUndefined();
  });

  it('starts anew for a Service that was forgotten, and tells a later creation', () => {
    const times = new TriggerTimes();
    times.observe('ns/web', service(), []);
    const remade = service({}, { creationTimestamp: at(9) });
    expect(times.observe('ns/web', remade, [])).toBe(at(9));
    times.forget('ns/web');
    expect(times.observe('ns/web', remade, [])).toBe(at(9));
  });

  it('ignores what is no time, and keeps fractions without trailing zeros', () => {
    const times = new TriggerTimes();
    expect(times.observe('a', service({}, { creationTimestamp: 'soon' }), [])).toBeUndefined();
    const precise = service({}, { creationTimestamp: '2026-01-02T03:04:05.120Z' });
    expect(times.observe('b', precise, [])).toBe('2026-01-02T03:04:05.12Z');
  });
});

describe('withTriggerTime', () => {
  it('sets, replaces and takes away', () => {
    const key = 'endpoints.kubernetes.io/last-change-trigger-time';
    expect(withTriggerTime(undefined, at(1))).toEqual({ [key]: at(1) });
    expect(withTriggerTime({ [key]: at(1), note: 'x' }, undefined)).toEqual({ note: 'x' });
    expect(withTriggerTime({ [key]: at(1) }, undefined)).toBeUndefined();
  });
});
