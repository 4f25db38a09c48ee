import { type Flags, textOf, yesOrNo } from './flags.ts';

/** Which Services are served, and how they are read. */
export interface LoadBalancerSettings {
  readonly loadBalancerClass: string;
  /** Services without a class too. */
  readonly isDefaultClass: boolean;
  /** Other load balancers' annotations count. */
  readonly compat: boolean;
}

/** What the flags say of every command that reads Services as the load balancer does. */
export function loadBalancerSettings(flags: Flags): LoadBalancerSettings {
  return {
    loadBalancerClass: flags.read('lbClass', textOf()),
    isDefaultClass: flags.read('defaultClass', yesOrNo),
    compat: flags.read('compat', yesOrNo),
  };
}
