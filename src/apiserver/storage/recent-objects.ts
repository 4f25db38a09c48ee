import type { KubeObject } from '../../objects/meta.ts';
import { Ring } from './ring.ts';

/** A version that can make its object again, from its text. */
export interface Forgetful {
  /** Lets go of the object. */
  forget(): void;
}

/** An object in memory. */
export interface Held {
  readonly version: Forgetful;
  readonly object: KubeObject;
  /** Bytes of its text. */
  readonly weight: number;
  /** Somebody asked for it since it was last looked at. */
  used: boolean;
}

/** Bytes of text whose objects are kept: those of some hundred objects, which take four times as much. */
const MOST = 2 ** 20;

/**
 * The objects that are in memory besides the texts they are stored as: those that were asked for last. A tree of
 * objects takes as much memory as its text, and its many parts cost the collector far more; most of what a store holds
 * is never looked at again.
 *
 * Objects go in the order they came; one that was asked for in the meantime gets another round, so that what every
 * request needs (namespaces, roles, definitions) stays.
 */
export class RecentObjects {
  private readonly most: number;
  private readonly entries = new Ring<Held>();
  private weight = 0;

  /** @param most bytes of text whose objects are kept. */
  constructor(most = MOST) {
    this.most = most;
  }

  /** Takes the object of a version in. */
  hold(entry: Omit<Held, 'used'>): Held {
    const held: Held = { ...entry, used: false };
    // The newest is not among those that may have to go.
    for (let i = this.entries.length; i > 0 && this.weight + held.weight > this.most; i--) this.next();
    this.entries.push(held);
    this.weight += held.weight;
    return held;
  }

  private next(): void {
    const held = this.entries.shift();
    if (held === undefined) return;
    if (held.used) {
      held.used = false;
      this.entries.push(held);
      return;
    }
    this.weight -= held.weight;
    held.version.forget();
  }
}
