import { forbidden } from '../../objects/status-errors.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../rest/admission.ts';
import { isSuperuser, type RbacAuthorizer } from './rbac.ts';

/**
 * An update or an apply that creates its object also needs the right to create (apiserver
 * `endpoints/handlers/update.go`, withAuthorization).
 */
export class CreateOnUpdateCheck implements AdmissionPlugin {
  readonly #rbac: RbacAuthorizer;

  constructor(rbac: RbacAuthorizer) {
    this.#rbac = rbac;
  }

  handles({ operation, options, user }: AdmissionAttributes): boolean {
    const kind = options?.['kind'];
    return (
      operation === 'CREATE' && (kind === 'UpdateOptions' || kind === 'PatchOptions') && !isSuperuser(user)
    );
  }

  /** Runs after the rules of the kind and before other plugins validate. @throws {StatusError} 403 */
  validate({ resource, subresource, namespace, name, user }: AdmissionAttributes): Promise<void> {
    return new Promise((resolve) => {
      const { group, plural } = resource.definition;
      const access = { group, resource: plural, subresource, namespace, name };
      const { allowed, reason } = this.#rbac.authorize(user, { verb: 'create', path: '', resource: access });
      if (!allowed) throw forbidden(resource.groupResource, name, reason);
      resolve();
    });
  }
}
