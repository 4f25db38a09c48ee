/** An API server to test. */
export interface Target {
  /** For the report: `embedded (IPv4)`. */
  readonly name: string;
  readonly kubeconfig: string;
  /** Who writes Endpoints and EndpointSlices there: the target itself, or nothing until we do. */
  readonly endpoints: 'target' | 'none';
  /**
   * Who our processes are there: the service account of deploy/base, which is applied first, or the kubeconfig's user,
   * where the suite shall install nothing.
   */
  readonly identity: 'service-account' | 'kubeconfig-user';
  /** Who runs servicenet's controllers: the suite as processes, or a Deployment in the cluster. */
  readonly controllers: 'suite' | 'deployed';
  stop(): Promise<void>;
}
