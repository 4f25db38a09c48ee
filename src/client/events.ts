import type { KubeObject } from '../objects/meta.ts';

/** Tells users what a controller did, as Events. Returns at once; Events are sent behind the caller's back. */
export interface EventRecorder {
  /**
   * @param regarding the object that `kubectl describe` shows it with; apiVersion and kind must be set.
   * @param reason one CamelCase word from the reason vocabulary.
   */
  event(regarding: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void;
}
