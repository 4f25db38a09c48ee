/** Which plugins are called again for a write that others have changed (apiserver `admission/reinvocation.go`). */
import { jsonEqual } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';

/** The rounds of the mutating plugins on one write: a second one when a policy or a webhook changed the object in the first. */
export class Reinvocation {
  #isSecond = false;
  #isWanted = false;
  readonly #plugins = new Map<string, PluginRounds>();

  get isSecond(): boolean {
    return this.#isSecond;
  }

  /** True when the first round changed the object and some plugin must be called again. */
  get isWanted(): boolean {
    return this.#isWanted;
  }

  want(): void {
    this.#isWanted = true;
  }

  startSecond(): void {
    this.#isSecond = true;
  }

  /** What a plugin keeps from one round to the next. */
  of(plugin: string): PluginRounds {
    const known = this.#plugins.get(plugin) ?? new PluginRounds(this);
    this.#plugins.set(plugin, known);
    return known;
  }
}

/**
 * Which webhooks or policies of a plugin are called (`plugin/webhook/mutating/reinvocationcontext.go` and
 * `plugin/policy/mutating/reinvocationcontext.go`): all in the first round; in the second those with IfNeeded that were
 * called before another one changed the object.
 */
class PluginRounds {
  readonly #rounds: Reinvocation;
  #asked = new Set<string>();
  readonly #again = new Set<string>();
  #output: KubeObject | undefined;

  constructor(rounds: Reinvocation) {
    this.#rounds = rounds;
  }

  /** Begins a round. What other plugins have changed since is news to all. */
  begin(object: KubeObject | undefined): void {
    if (this.#rounds.isSecond && !jsonEqual(object, this.#output)) this.#askAgain();
  }

  /** Webhooks that were not called in the first round are not called in the second. */
  asks(id: string): boolean {
    return !this.#rounds.isSecond || this.#again.has(id);
  }

  /** Records that a plugin has changed the object, before {@link asked} records that it was called. */
  changed(): void {
    this.#askAgain();
    this.#rounds.want();
  }

  /** Records a call of a webhook with IfNeeded. */
  asked(id: string): void {
    this.#asked.add(id);
  }

  end(object: KubeObject | undefined): void {
    this.#output = object;
  }

  #askAgain(): void {
    for (const id of this.#asked) this.#again.add(id);
    this.#asked = new Set();
  }
}
