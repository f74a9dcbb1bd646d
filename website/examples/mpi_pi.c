/* Compute pi with all ranks of an MPI world, and say which nodes took part.
 * Build with the compiler of the MPI that runs it: mpicc.openmpi or mpicc.mpich. */
#include <mpi.h>
#include <stdio.h>

#define STEPS 3000000L

int main(int argc, char **argv) {
    int rank, size, length;
    double share = 0, pi = 0;
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (long i = rank; i < STEPS; i += size) {
        double x = (i + 0.5) / STEPS;
        share += 4.0 / (1.0 + x * x) / STEPS;
    }
    MPI_Reduce(&share, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Get_processor_name(host, &length);
    printf("rank %d of %d on %s\n", rank, size, host);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("pi is %.12f by %d ranks\n", pi, size);
    MPI_Finalize();
    return 0;
}
