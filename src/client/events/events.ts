import type { KubeObject } from '../../objects/meta.ts';
import type { EventReason } from '../../objects/reasons.ts';

/** An Event to record about an object. */
export interface PlannedEvent<Reason extends EventReason = EventReason> {
  readonly type: 'Normal' | 'Warning';
  readonly reason: Reason;
  readonly message: string;
}

/** Records Events about what a controller did. Returns at once; Events are sent in the background. */
export interface EventRecorder {
  /**
   * @param regarding the object that the Event is about; apiVersion and kind must be set.
   * @param reason one of `objects/reasons.ts`.
   * @param fieldPath the part of the object, as `spec.containers{name}`.
   */
  event(
    regarding: KubeObject,
    type: PlannedEvent['type'],
    reason: EventReason,
    message: string,
    fieldPath?: string,
  ): void;
}
