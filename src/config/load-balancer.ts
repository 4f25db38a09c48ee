import { isQualifiedName } from '../objects/names.ts';
import { type Flags, textOf, yesOrNo } from './flags.ts';
import { WrongValue } from './errors.ts';

/** Which Services are served, and how they are read. */
export interface LoadBalancerSettings {
  readonly loadBalancerClass: string;
  /** Services without a class too. */
  readonly isDefaultClass: boolean;
  /** Other load balancers' annotations count. */
  readonly compat: boolean;
}

/** The flags of every command that reads Services as the load balancer does. */
export function loadBalancerSettings(flags: Flags): LoadBalancerSettings {
  return {
    loadBalancerClass: flags.read('lbClass', className),
    isDefaultClass: flags.read('defaultClass', yesOrNo),
    compat: flags.read('compat', yesOrNo),
  };
}

/** A class that the API accepts in `spec.loadBalancerClass`. */
function className(value: unknown): string {
  const name = textOf()(value);
  const [problem] = isQualifiedName(name);
  if (problem !== undefined) throw new WrongValue(problem);
  return name;
}
