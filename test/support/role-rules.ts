import { isRecord } from '../../src/objects/json.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { listAt } from '../../src/objects/json.ts';
import { type Permission, phraseOf } from './permission-recorder.ts';

/** One verb on one resource that a role grants. */
export interface Grant {
  /** `patch services/status`. */
  readonly name: string;
  readonly verb: string;
  readonly role: KubeObject;
  /** The same role without it. */
  readonly without: KubeObject;
}

/** Everything that the Roles and ClusterRoles among some objects grant. */
export function grantsOf(objects: readonly KubeObject[]): Grant[] {
  const roles = objects.filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role');
  return roles.flatMap((role) =>
    listAt(role, 'rules').flatMap((rule) =>
      textsAt(rule, 'apiGroups').flatMap((group) =>
        textsAt(rule, 'resources').flatMap((resource) =>
          textsAt(rule, 'verbs').map((verb) => {
            const permission = { group, resource, verb };
            return { name: phraseOf(permission), verb, role, without: without(role, permission) };
          }),
        ),
      ),
    ),
  );
}

function without(role: KubeObject, lost: Permission): KubeObject {
  const rules = listAt(role, 'rules').flatMap((rule) =>
    textsAt(rule, 'resources').map((resource) => {
      const isLost = resource === lost.resource && textsAt(rule, 'apiGroups').includes(lost.group);
      const verbs = textsAt(rule, 'verbs').filter((verb) => !(isLost && verb === lost.verb));
      return { ...(isRecord(rule) ? rule : {}), resources: [resource], verbs };
    }),
  );
  return Object.assign({ ...role }, { rules: rules.filter(({ verbs }) => verbs.length > 0) });
}

/** The texts in a list. */
export function textsAt(value: unknown, member: string): string[] {
  return listAt(value, member).filter((text) => typeof text === 'string');
}
