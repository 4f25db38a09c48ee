import { at } from '../../objects/read.ts';
import { forbidden } from '../../objects/status-errors.ts';
import { defaultPriorityClass } from '../../registry/core/pod/scheduling/priority.ts';
import { schedulingGroup, systemPriorityClasses } from '../../registry/scheduling/priorityclass/strategy.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../rest/admission.ts';
import { type ServerCore, strategyContext } from '../rest/server-core.ts';

/**
 * At most one PriorityClass is the default (admission Priority), and the system's classes cannot be deleted
 * (`pkg/registry/scheduling/priorityclass/storage`).
 */
export class PriorityClassAdmission implements AdmissionPlugin {
  readonly #core: ServerCore;

  constructor(core: ServerCore) {
    this.#core = core;
  }

  handles({ resource: { definition }, operation, object }: AdmissionAttributes): boolean {
    if (definition.group !== schedulingGroup || definition.plural !== 'priorityclasses') return false;
    return operation === 'DELETE' || at(object, 'globalDefault') === true;
  }

  /** @throws {StatusError} 403 */
  validate(attributes: AdmissionAttributes): Promise<void> {
    return new Promise((resolve) => {
      if (attributes.operation === 'DELETE') refuseSystemClass(attributes);
      else this.#refuseSecondDefault(attributes);
      resolve();
    });
  }

  #refuseSecondDefault({ operation, object, resource, name }: AdmissionAttributes): void {
    if (at(object, 'globalDefault') !== true) return;
    const present = defaultPriorityClass(strategyContext(this.#core, false).cluster)?.metadata.name;
    if (present === undefined || (operation === 'UPDATE' && present === name)) return;
    const why = `PriorityClass ${present} is already marked as default. Only one default can exist`;
    throw forbidden(resource.groupResource, name, why);
  }
}

function refuseSystemClass({ resource, name }: AdmissionAttributes): void {
  if (!systemPriorityClasses.some(({ metadata }) => metadata.name === name)) return;
  const why = 'this is a system priority class and cannot be deleted';
  throw forbidden(resource.groupResource, name, why);
}
