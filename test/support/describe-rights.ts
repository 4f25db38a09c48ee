import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubeObject } from '../../src/objects/meta.ts';
import { type Chosen, DeployedControllers, type Provocation } from './deployed-controllers.ts';
import { applyStrictly } from './manifests.ts';
import { type Grant, grantsOf } from './role-rules.ts';

/** The rights of some controllers. */
export interface Rights {
  /** The manifests that grant them. */
  readonly objects: readonly KubeObject[];
  readonly chosen: Chosen;
  readonly provocation: Provocation;
  /** Rights that our API server never asks for, because it lacks the admission plugin that does. */
  readonly askedByAdmission?: readonly string[];
}

/**
 * Tests that controllers which have one ClusterRole use all that it grants, and nothing else, and that a right that is
 * taken away is missed.
 */
export function describeRights({ objects, chosen, provocation, askedByAdmission = [] }: Rights): void {
  const roles = objects.filter(({ kind, metadata }) => kind === 'Role' || metadata.name === chosen.role);
  const grants = grantsOf(roles).filter(({ name }) => !askedByAdmission.includes(name));

  describe(`the rights of ${chosen.role}`, () => {
    let deployed: DeployedControllers;

    beforeAll(async () => {
      deployed = await DeployedControllers.start(objects, chosen);
    });

    afterAll(async () => {
      await deployed.stop();
    });

    test('are those that its controllers use, no more and no less', async () => {
      const granted = grants.map(({ name }) => name).sort();
      const asked = new Set<string>();
      // Whether a server streams its lists or not: old ones do not.
      for (const watchList of [true, false]) {
        const wanted = grants.filter((grant) => !watchList || !isListOfCache(grant, grants));
        let rounds = 0;
        await deployed.exercise(watchList, provocation, (transport, refused) => {
          expect(refused).toEqual([]);
          // Not only until all that is granted was asked for: what is not granted has to show, too.
          const phrases = transport.phrases();
          const isWhole = ++rounds > provocation.rounds && wanted.every(({ name }) => phrases.includes(name));
          if (isWhole) for (const phrase of phrases) asked.add(phrase);
          return isWhole;
        });
      }
      expect([...asked].sort()).toEqual(granted);
    });

    test.each(takenAway(grants))('without "$name" something is refused', async (grant) => {
      const { name, role, without } = grant;
      await applyStrictly(deployed.server.client, [without]);
      try {
        await deployed.exercise(!isListOfCache(grant, grants), provocation, (_, refused) =>
          refused.includes(name),
        );
      } finally {
        await applyStrictly(deployed.server.client, [role]);
      }
    });
  });
}

/**
 * All rights with `RIGHTS=each`, else one of each verb: what controllers ask for says which rights they cannot be without,
 * and these that a refusal is said.
 */
function takenAway(grants: readonly Grant[]): readonly Grant[] {
  if (process.env['RIGHTS'] === 'each') return grants;
  return [...new Map(grants.map((grant) => [grant.verb, grant])).values()];
}

/** Whether only caches ask for it, of servers that do not stream lists: what is not watched is looked at once. */
function isListOfCache({ verb, name }: Grant, grants: readonly Grant[]): boolean {
  return verb === 'list' && grants.some((grant) => grant.name === name.replace('list', 'watch'));
}
