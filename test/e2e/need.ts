import type { TestContext } from 'vitest';
import type { Ability, Cluster } from './cluster.ts';

/** Skips a test where the cluster lacks an ability, and says which. */
export type Need = (context: TestContext, ability: Ability) => void;

/** Remembers what was skipped, for the report. */
export class Skipped {
  readonly #lines: string[] = [];

  need(cluster: () => Cluster): Need {
    return (context, ability) => {
      if (cluster().abilities.has(ability)) return;
      this.#lines.push(`  ${context.task.name}: needs ${ability}`);
      context.skip(`needs ${ability}`);
    };
  }

  /** One line for each, or that there were none. */
  report(name: string): string {
    if (this.#lines.length === 0) return `${name}: nothing skipped\n`;
    return `${name}: skipped\n${this.#lines.join('\n')}\n`;
  }
}
