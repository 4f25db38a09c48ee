import type { KubeObject } from '../../objects/meta.ts';

/** An Event to record about an object. */
export interface PlannedEvent<Reason extends string = string> {
  readonly type: 'Normal' | 'Warning';
  readonly reason: Reason;
  readonly message: string;
}

/** Records Events about what a controller did. Returns at once; Events are sent in the background. */
export interface EventRecorder {
  /**
   * @param regarding the object that the Event is about; apiVersion and kind must be set.
   * @param reason one CamelCase word from the reason vocabulary.
   */
  event(regarding: KubeObject, type: PlannedEvent['type'], reason: string, message: string): void;
}
