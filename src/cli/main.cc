#include <cstdio>
#include <chrono>
#include "expectation/engine.h"
using namespace headflow;
int main(int argc, char** argv){
  for (auto act : {"softmax","softmax-1","b-softmax"})
  for (auto [H,F,L] : {std::tuple{2,2,10},{4,2,5},{8,3,5},{8,4,5}}) {
    ProblemOptions o; o.activation=act; o.heads=H;o.features=F;o.tokens=L; o.prior_parameters["nu"]=Matrix::Constant(1,1,2.0);
    if (argc>1) o.prior=argv[1];
    Problem p(o); EngineOptions e; e.threads=1; auto eng=make_engine(p,e);
    Point x=Point::zero(H,F); std::srand(1); x.m=Matrix::Random(H,F); x.R=Matrix::Identity(H,H)+0.1*Matrix::Random(H,H); x.v=1;
    Evaluation ev; eng->evaluate(x,{},ev);
    double best=1e9; for(int i=0;i<20;i++){auto t=std::chrono::steady_clock::now(); eng->evaluate(x,{},ev); best=std::min(best,std::chrono::duration<double>(std::chrono::steady_clock::now()-t).count());}
    auto t=std::chrono::steady_clock::now(); eng->refresh(1); double tr=std::chrono::duration<double>(std::chrono::steady_clock::now()-t).count();
    printf("%s %d %d %d  %.3f ms  refresh %.3f ms loss %.6f +- %.6f gm %.6f\n",act,H,F,L,best*1e3,tr*1e3,ev.loss,ev.loss_error,ev.grad.m(0,0));
  }
}
