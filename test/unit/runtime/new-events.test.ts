import { expect, it } from 'vitest';
import type { PlannedEvent } from '../../../src/client/events/events.ts';
import { NewEvents } from '../../../src/runtime/new-events.ts';
import { controllerContext } from '../../support/controller-context.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const event = (message: string): PlannedEvent => ({ type: 'Warning', reason: 'Created', message });
const service = { metadata: { name: 'web', namespace: 'n' } };

it('records the Events of a reconcile again only when they differ from the last ones', () => {
  const context = controllerContext(new FakeClock());
  const events = new NewEvents(context);
  events.record('n/web', service, [event('a'), event('b')]);
  events.record('n/web', service, [event('a'), event('b')]);
  events.record('n/other', service, [event('a')]);
  events.record('n/web', service, [event('a')]);
  events.record('n/web', service, []);
  events.record('n/web', service, [event('a')]);
  events.forget('n/web');
  events.record('n/web', service, [event('a')]);
  expect(context.recorded).toEqual(
    ['a', 'b', 'a', 'a', 'a', 'a'].map((text) => `Warning Created web: ${text}`),
  );
});
